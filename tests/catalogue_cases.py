"""Calls of functions that are made of other functions of NumPy, by module.

Each is a text, for `minijax.numpy`, `jax.numpy` and NumPy itself.
"""

import warnings

import numpy as np

_random = np.random.default_rng(0)
ARRAYS = {
    "x": _random.normal(size=(3, 4)).astype("float32"),
    "y": _random.normal(size=(3, 4)).astype("float32"),
    "v": np.float32([1.5, -2, 0, -0.0, np.nan, np.inf, -np.inf]),
    "w": np.float32([[1, np.nan, 3], [np.nan, np.nan, np.nan]]),
    "i": np.arange(12).reshape(3, 4) - 5,
    "b": np.array([[True, False], [False, True]]),
    "c": np.complex64([1 + 2j, -0.5j, -3]),
    "u": np.uint8([1, 2, 255]),
    "h": np.float16([1.5, -2, 0, 6e-8, 65504]),
    "t": np.float32([1, 2, 3]),
}
CALLS = {
    "floats": """
        jnp.signbit(v); jnp.signbit(i); jnp.signbit(b); jnp.signbit(u); jnp.signbit(c);
        jnp.signbit(h); jnp.signbit(-0.0); jnp.copysign(v,-1); jnp.copysign(x,y);
        jnp.copysign(i,-2); jnp.copysign(1.,-2); jnp.copysign(c,1); jnp.fabs(i);
        jnp.fabs(x); jnp.fabs(c); jnp.float_power(i,2); jnp.float_power(np.abs(x),y);
        jnp.float_power(2,3); jnp.isposinf(v); jnp.isneginf(v); jnp.isposinf(i);
        jnp.isposinf(c); jnp.nan_to_num(v); jnp.nan_to_num(v,nan=1,posinf=2,neginf=3);
        jnp.nan_to_num(c/0); jnp.nan_to_num(h/0); jnp.nan_to_num(i);
        jnp.nan_to_num(np.nan); jnp.frexp(x); jnp.frexp(h); jnp.frexp(i); jnp.frexp(3);
        jnp.frexp(c); jnp.ldexp(x,3); jnp.ldexp(x,i); jnp.ldexp(v,2); jnp.ldexp(3,2);
        jnp.ldexp(x,1.); jnp.ldexp(h,-3); jnp.ldexp(t,[1,2,3]);
        jnp.ldexp(t,np.int32([120,127,-140])); jnp.modf(v); jnp.modf(x*3); jnp.modf(i);
        jnp.modf(2.5); jnp.heaviside(x,y); jnp.heaviside(i,2); jnp.sinc(x); jnp.sinc(v);
        jnp.sinc(i); jnp.sinc(0); jnp.logaddexp2(x,y); jnp.logaddexp2(v,v);
        jnp.logaddexp2(1,2); jnp.logaddexp2(i,x); jnp.fmin(v,0); jnp.fmin(x,y);
        jnp.fmin(t,x[:,:3]); jnp.fmax(v,v[::-1].copy()); jnp.fmax(1,2.); jnp.fmax(i,x);
        jnp.angle(c); jnp.angle(x); jnp.angle(c,deg=True); jnp.angle(i); jnp.angle(1j);
        jnp.angle(h); jnp.angle(-1.); jnp.sinc(np.complex64([0,1j])); jnp.ldexp(t,u);
        jnp.fmin(b,b); jnp.logaddexp2(h,h)
    """,
    "missing_numbers": """
        jnp.nansum(w); jnp.nansum(w,0); jnp.nansum(w,1,keepdims=True); jnp.nansum(i,0);
        jnp.nansum(w,initial=2); jnp.nansum(w,where=w>2); jnp.nansum(c);
        jnp.nansum(w,dtype='float16'); jnp.nanprod(w,1); jnp.nanprod(b); jnp.nanmin(w);
        jnp.nanmin(w,1); jnp.nanmin(w,1,initial=0); jnp.nanmax(w,0); jnp.nanmax(i,0);
        jnp.nanmax(w,axis=(0,1),keepdims=True); jnp.nanmean(w); jnp.nanmean(w,1);
        jnp.nanmean(i,0); jnp.nanmean(w,0,keepdims=True); jnp.nanmean(c);
        jnp.nanmean(h); jnp.nanvar(w); jnp.nanvar(w,0); jnp.nanvar(w,1,ddof=1);
        jnp.nanvar(c); jnp.nanvar(h); jnp.nanvar(i); jnp.nanstd(w); jnp.nanstd(x,0);
        jnp.nanvar(w,mean=2.); jnp.nancumsum(w); jnp.nancumsum(w,1);
        jnp.nancumprod(w,0); jnp.nancumsum(i,1); jnp.nancumsum(b); jnp.nanargmax(w);
        jnp.nanargmax(w,1); jnp.nanargmin(w,0); jnp.nanargmin(w,1,keepdims=True);
        jnp.nanargmin(i,0); jnp.nanmean(b); jnp.nanstd(c)
    """,
    "arrangements": """
        jnp.amax(x); jnp.amin(x,0); jnp.fliplr(x); jnp.flipud(x); jnp.fliplr(t);
        jnp.rot90(x); jnp.rot90(x,2); jnp.rot90(x,3); jnp.rot90(x,-1); jnp.rot90(t);
        jnp.rot90(x,1,(1,0)); jnp.rot90(x,1,(0,0)); jnp.rollaxis(x,1);
        jnp.rollaxis(np.zeros((2,3,4)),0,3); jnp.rollaxis(np.zeros((2,3,4)),2,-2);
        jnp.permute_dims(x,(1,0)); jnp.concat([x,i]); jnp.concat([x,x],axis=1);
        jnp.concat([x,x],axis=None); jnp.unstack(x); jnp.unstack(x,axis=1);
        jnp.unstack(3.); jnp.dstack([x,y]); jnp.dstack([t,t]); jnp.dstack(x);
        jnp.column_stack([t,t]); jnp.column_stack([x,t]); jnp.column_stack([1,2]);
        jnp.vsplit(x,3); jnp.hsplit(x,2); jnp.hsplit(t,3);
        jnp.dsplit(np.zeros((2,3,4)),2); jnp.vsplit(x,[1]); jnp.block([[x,x],[x,x]]);
        jnp.block([1,2]); jnp.block(x);
        jnp.block([[b,np.ones((2,1))],[np.zeros((1,2)),1]]); jnp.block([]);
        jnp.block((1,2)); jnp.resize(x,(5,5)); jnp.resize(x,3);
        jnp.resize(np.zeros(0),(2,)); jnp.resize(t,(0,2)); jnp.resize(t,(-1,));
        jnp.kron(x,y); jnp.kron(t,x); jnp.kron(i,t); jnp.kron(2,t); jnp.diagflat(x);
        jnp.diagflat(t,1); jnp.diagflat(t,-2); jnp.diagflat(3.); jnp.delete(x,1);
        jnp.delete(x,1,0); jnp.delete(x,-1,1); jnp.delete(x,slice(0,2),1);
        jnp.delete(x,np.array([0,2]),1); jnp.delete(x,[0,0],1);
        jnp.delete(x,np.array([True,False,True]),0); jnp.delete(x,9,0);
        jnp.delete(t,slice(None)); jnp.insert(t,1,9); jnp.insert(t,[0,3],[7,8]);
        jnp.insert(x,1,0,axis=0); jnp.insert(x,1,t[0],axis=1);
        jnp.insert(x,[1,2],y[:,:2],axis=1); jnp.insert(t,slice(0,2),5);
        jnp.insert(x,2,np.arange(3),axis=1); jnp.insert(t,-1,4); jnp.insert(t,1,[4,5]);
        jnp.insert(x,[1],np.ones((3,1)),axis=1); jnp.insert(i,0,2.7)
    """,
    "measures": """
        jnp.diff(x); jnp.diff(x,2); jnp.diff(x,axis=0); jnp.diff(b); jnp.diff(u);
        jnp.diff(t,prepend=0); jnp.diff(t,append=t,prepend=1); jnp.diff(t,5);
        jnp.diff(t,0); jnp.diff(t,-1); jnp.diff(3); jnp.ediff1d(t);
        jnp.ediff1d(x,to_end=1); jnp.ediff1d(i,to_begin=t,to_end=[1] and np.array([9]));
        jnp.trapezoid(x); jnp.trapezoid(x,axis=0); jnp.trapezoid(t,t);
        jnp.trapezoid(t,dx=2); jnp.trapezoid(x,y); jnp.trapezoid(i);
        jnp.trapezoid(x,t,axis=0); jnp.average(x); jnp.average(x,0);
        jnp.average(x,1,np.float32([1,2,3,4])); jnp.average(i);
        jnp.average(x,weights=y); jnp.average(x,0,returned=True);
        jnp.average(x,1,np.arange(4),returned=True); jnp.average(x,weights=t);
        jnp.average(x,0,weights=np.ones(2)); jnp.average(x,(0,1),keepdims=True);
        jnp.average(b); jnp.average(x,(1,0),weights=np.ones((4,3)));
        jnp.cumulative_sum(t); jnp.cumulative_sum(x,axis=1); jnp.cumulative_sum(x);
        jnp.cumulative_sum(u); jnp.cumulative_sum(b,axis=0);
        jnp.cumulative_sum(t,include_initial=True);
        jnp.cumulative_prod(x,axis=0,include_initial=True); jnp.cumulative_prod(u);
        jnp.cumulative_prod(3); jnp.cumulative_sum(h); jnp.vecdot(x,y);
        jnp.vecdot(x,y,axis=0); jnp.vecdot(c,c); jnp.vecdot(t,t); jnp.vecdot(x,t);
        jnp.vecdot(x,np.arange(4)); jnp.matvec(x,np.arange(4.));
        jnp.matvec(np.ones((2,3,4)),np.ones((2,4))); jnp.vecmat(t,x); jnp.vecmat(c,x);
        jnp.cross(t,t[::-1].copy()); jnp.cross(t[:2],t[:2]); jnp.cross(t[:2],t);
        jnp.cross(x,y,axis=0); jnp.cross(x,y); jnp.cross(x[:,:3],t);
        jnp.cross(x[:,:3],y[:,:3],axisc=0); jnp.vander(t); jnp.vander(t,2);
        jnp.vander(t,4,True); jnp.vander(np.arange(4)); jnp.vander(x); jnp.polyval(t,x);
        jnp.polyval(np.arange(3),2); jnp.polyval(t,2); jnp.polyval(x,np.ones(4,'f'));
        jnp.polyder(t); jnp.polyder(t,2); jnp.polyder(t,0); jnp.polyder(np.arange(5),2);
        jnp.polyder(t,-1); jnp.geomspace(1,100,3);
        jnp.geomspace(1.,64.,4,endpoint=False); jnp.geomspace(-1,-100,3);
        jnp.logspace(0,2,3); jnp.logspace(0.,3.,4,base=2); jnp.logspace(t,4,3);
        jnp.vander(u); jnp.trapezoid(h); jnp.average(h); jnp.diff(c)
    """,
    "standard": """
        jnp.isdtype('int8','integral'); jnp.isdtype('int8',('bool','real floating'));
        jnp.isdtype(jnp.bfloat16,'real floating'); jnp.isdtype('float32',jnp.float32);
        jnp.isdtype('float32','foo'); jnp.isdtype('float32',3);
        jnp.can_cast('int32','float32'); jnp.can_cast(jnp.float32,jnp.int8,'unsafe');
        jnp.iterable(x); jnp.iterable(3); jnp.iterable('a')
    """,
}


# NumPy multiplies bytes in wider words, and keeps the sign of a zero behind infinity.
UNLIKE_NUMPY = {"jnp.modf(v)", "jnp.cumulative_prod(u)", "jnp.vander(u)"}


def calls(module):
    """The calls of functions of a module of `minijax.catalogue`."""
    return [text.strip() for text in CALLS[module].split(";")]


def answer(text, numpy):
    """The value of a call, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"np": np, "jnp": numpy, **ARRAYS})
    except Exception as error:
        return error


def leaves(value):
    """A value as a list of arrays."""
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def difference_from_numpy(text, numpy):
    """What our numbers and NumPy's say, if they are not close; otherwise, None.

    NumPy refuses other things, and computes in 64 bits: dtypes and errors are
    compared with JAX alone.
    """
    ours, theirs = answer(text, numpy), answer(text, np)
    if text in UNLIKE_NUMPY:
        return None
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return None
    for pair in zip(leaves(ours), leaves(theirs), strict=True):
        a, b = (np.asarray(each).astype(complex) for each in pair)
        narrow = np.asarray(pair[0]).dtype == np.float16
        tolerance = 2e-3 if narrow else 2e-5
        if a.shape != b.shape or not np.allclose(
            a, b, rtol=tolerance, atol=tolerance, equal_nan=True
        ):
            return f"{a}\nNumPy: {b}"
    return None
