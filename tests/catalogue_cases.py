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
    "windows": """
        jnp.hanning(5); jnp.hamming(6); jnp.bartlett(5); jnp.blackman(7);
        jnp.bartlett(4); jnp.hanning(1); jnp.hamming(0); jnp.blackman(-2);
        jnp.hanning(2); jnp.bartlett('a')
    """,
    "grids": """
        jnp.mgrid[0:4]; jnp.mgrid[:2,:3]; jnp.mgrid[0:1:4j]; jnp.mgrid[:2,0:1:3j];
        jnp.mgrid[1:8:3]; jnp.ogrid[:2,:3]; jnp.ogrid[0:4]; jnp.ogrid[0:1:3j,:2];
        jnp.mgrid[()]; jnp.r_[1:4,0,t]; jnp.r_[t,2.5]; jnp.r_['0,2',[1,2],[4,5]];
        jnp.r_['0,2,0',[1,2],[4,5]]; jnp.r_['1,2,0',[1,2],[4,5]];
        jnp.r_['0,3,1',[1,2],[4,5]]; jnp.r_['0,2,-2',[1,2],[4,5]]; jnp.r_['r',[1,2],3];
        jnp.r_['c',[1,2],3]; jnp.r_[0:1:5j]; jnp.r_['foo',1]; jnp.r_[1,'r'];
        jnp.r_[x,y]; jnp.r_['-1',x,y]; jnp.c_[t,t]; jnp.c_[x,y]; jnp.c_[1:3,[4,5]];
        jnp.c_['0,2',[1,2],[4,5]]; jnp.c_['0,2,-1',[1,2],[4,5]];
        jnp.c_['r',[1,2],[4,5]]; jnp.c_[2]; len(jnp.r_); jnp.s_[1:2,...];
        jnp.index_exp[1]; jnp.ix_(np.arange(2),np.arange(3)); jnp.ix_(t); jnp.ix_(x);
        jnp.ix_(np.array([True])); jnp.ix_(np.zeros(0)); jnp.indices((2,3));
        jnp.indices((2,3),sparse=True); jnp.indices((2,),dtype=float); jnp.indices(());
        jnp.indices((0,2)); jnp.tril_indices(3); jnp.tril_indices(3,1);
        jnp.tril_indices(2,-1,4); jnp.triu_indices(3); jnp.triu_indices(3,-1,2);
        jnp.triu_indices(2,5); jnp.tril_indices_from(x); jnp.triu_indices_from(x,1);
        jnp.tril_indices_from(t); jnp.mask_indices(3,jnp.triu,1);
        jnp.mask_indices(3,jnp.tril,size=8); jnp.mask_indices(3,jnp.tril,size=2);
        jnp.diag_indices_from(x[:,:3]); jnp.diag_indices_from(x);
        jnp.diag_indices_from(t); jnp.fill_diagonal(x,0,inplace=False);
        jnp.fill_diagonal(i,2.7,inplace=False); jnp.fill_diagonal(x,t,inplace=False);
        jnp.fill_diagonal(x.T,t[:2],inplace=False); jnp.fill_diagonal(x,1);
        jnp.fill_diagonal(np.zeros((2,2,2)),[1,2] and t[:2],inplace=False);
        jnp.fill_diagonal(np.zeros((2,2,3)),1,inplace=False);
        jnp.fill_diagonal(t,1,inplace=False); jnp.fill_diagonal(i,t,True,inplace=False);
        jnp.fill_diagonal(np.zeros((4,2)),t,inplace=False);
        jnp.ravel_multi_index((np.array([1,2]),np.array([0,3])),(3,4));
        jnp.ravel_multi_index((1,2),(3,4));
        jnp.ravel_multi_index((1,2),(3,4),order='F');
        jnp.ravel_multi_index((5,-2),(3,4)); jnp.ravel_multi_index((5,-2),(3,4),'wrap');
        jnp.ravel_multi_index((5,-2),(3,4),'clip');
        jnp.ravel_multi_index((5,-2),(3,4),'ignore');
        jnp.ravel_multi_index((5,-2),(3,4),'no'); jnp.ravel_multi_index((1.,2),(3,4));
        jnp.ravel_multi_index((1,2),(3,4),order='K');
        jnp.ravel_multi_index((u,u),(300,300));
        jnp.ravel_multi_index((u,u),(9,9), 'wrap',dtype='uint8');
        jnp.ravel_multi_index((1,2),(99,99),dtype='int8');
        jnp.ravel_multi_index((1,2),(3,4),dtype=float); jnp.unravel_index(7,(3,4));
        jnp.unravel_index(np.array([0,11,12,-1,-20]),(3,4)); jnp.unravel_index(u,9);
        jnp.unravel_index(u,((2,3),));
        jnp.unravel_index(np.arange(6).reshape(2,3),(2,3))
    """,
    "selections": """
        jnp.select([x>0,x<-1],[x,y]); jnp.select([x>0,x<-1],[x,y],9);
        jnp.select([x>0],[1]); jnp.select([b,True],[1,2.5]); jnp.select([i>0],[i],u[0]);
        jnp.select([],[]); jnp.select([b],[1,2]); jnp.select([x>0],[i],t[0]);
        jnp.choose(np.array([0,1,2]),[t,1,u]); jnp.choose(np.array([0,5]),[1,2]);
        jnp.choose(np.array([0,5]),[1,2],mode='wrap');
        jnp.choose(np.array([-1,5]),[t[:2],2],mode='clip');
        jnp.choose(np.array([0]),[1],mode='no'); jnp.choose(t,[1,2]);
        jnp.choose(1,[x,y]); jnp.choose(1,[x,y],out=x); jnp.choose(u,x,mode='wrap');
        jnp.isin(i,np.array([0,3])); jnp.isin(i,np.array([0,3]),invert=True);
        jnp.isin(t,x); jnp.isin(t,np.zeros(0)); jnp.isin(t,2); jnp.isin(v,v);
        jnp.isin(t,t,method='sort'); jnp.isin(t,t,method='foo'); jnp.isin(c,c[:1]);
        jnp.interp(x,t,t*t); jnp.interp(2.5,t,t*t);
        jnp.interp(t+.5,t,t,left=-1,right=9);
        jnp.interp(x,t,t*t,left='extrapolate',right='extrapolate');
        jnp.interp(i,np.arange(4),np.arange(4)*2); jnp.interp(v,t,t*t);
        jnp.interp(x,t,np.complex64([1,2j,3])); jnp.interp(c,t,t); jnp.interp(x,x,x);
        jnp.interp(x,t,t,left='foo'); jnp.interp(h,t,t);
        jnp.interp(x,t[::-1],t*t,period=2.5); jnp.interp(h,t,t,period=-1);
        jnp.interp(1.5,np.float32([1,1,2]),t);
        jnp.interp(np.float32([1,2]), np.float32([1,1,2,2]),np.float32([1,2,3,4]));
        jnp.interp(0.,t[:1],t[:1]); jnp.unwrap(np.float32([0,1,2,9,8,-4]));
        jnp.unwrap(x*4); jnp.unwrap(x*4,axis=0); jnp.unwrap(np.arange(9)*3%7,period=7);
        jnp.unwrap(x*9,discont=4); jnp.unwrap(np.zeros((2,0),'f')); jnp.unwrap(c);
        jnp.unwrap(i*3,period=8); jnp.unwrap(h*3);
        jnp.unwrap(np.arange(0,40,7),period=12); jnp.packbits(b); jnp.packbits(i);
        jnp.packbits(i,axis=1); jnp.packbits(i,axis=0,bitorder='little');
        jnp.packbits(t); jnp.packbits(b,bitorder='foo'); jnp.unpackbits(u);
        jnp.unpackbits(u,count=3); jnp.unpackbits(u,count=30);
        jnp.unpackbits(u[None],axis=0);
        jnp.unpackbits(u[None],axis=1,bitorder='little'); jnp.unpackbits(i);
        jnp.unpackbits(u,bitorder='foo'); jnp.bitwise_count(i); jnp.bitwise_count(u);
        jnp.bitwise_count(7); jnp.bitwise_count(t); jnp.bitwise_count(b);
        jnp.spacing(x); jnp.spacing(h); jnp.spacing(v); jnp.spacing(1.); jnp.spacing(i);
        jnp.spacing(c)
    """,
    "samples": """
        jnp.cov(x); jnp.cov(t); jnp.cov(x,y); jnp.cov(x,rowvar=False);
        jnp.cov(x,bias=True); jnp.cov(x,ddof=0); jnp.cov(x,ddof=2);
        jnp.cov(x,fweights=np.array([1,2,0,3]));
        jnp.cov(x,aweights=np.float32([1,2,3,4]));
        jnp.cov(x,fweights=np.array([1,2,1,3]),aweights=np.float32([1,2,3,4]));
        jnp.cov(x,fweights=np.float32([1,2,1,3])); jnp.cov(x,aweights=t); jnp.cov(i);
        jnp.cov(x,fweights=i); jnp.cov(x,fweights=np.arange(3)); jnp.cov(c);
        jnp.cov(np.stack([c,c[::-1]])); jnp.cov(x,dtype='float16');
        jnp.cov(x,dtype=int); jnp.cov(np.zeros((2,2,2))); jnp.cov(np.zeros((0,3)));
        jnp.cov(np.zeros((2,0))); jnp.cov(t,t[::-1].copy()); jnp.cov(h); jnp.cov(3.);
        jnp.cov(x,aweights=np.float32([1,2,3,4]),ddof=0); jnp.corrcoef(x);
        jnp.corrcoef(x,y); jnp.corrcoef(t); jnp.corrcoef(x,rowvar=False);
        jnp.corrcoef(np.stack([c,c[::-1]*2j])); jnp.corrcoef(x,dtype='float16');
        jnp.corrcoef(x,dtype=int); jnp.corrcoef(i); jnp.polyadd(t,t);
        jnp.polyadd(t,x[0]); jnp.polyadd(x[0],t); jnp.polyadd(np.arange(3),t);
        jnp.polysub(t,x[0]); jnp.polysub(u,u); jnp.polyadd(3,t);
        jnp.polysub(t,np.arange(5)); jnp.polymul(t,t); jnp.polymul(t,x[0]);
        jnp.polymul(np.arange(3),np.arange(2)); jnp.polymul(c,t);
        jnp.polymul(np.float32([0,0,1,2]),t,trim_leading_zeros=True); jnp.polymul(t,3.);
        jnp.polymul(t,np.zeros(0)); jnp.polymul(x,t); jnp.polyint(t); jnp.polyint(t,2);
        jnp.polyint(t,2,3); jnp.polyint(t,2,np.float32([5,6])); jnp.polyint(t,0);
        jnp.polyint(t,-1); jnp.polyint(t,3,t[:2]); jnp.polyint(np.arange(3));
        jnp.polyint(c,2); jnp.gradient(x); jnp.gradient(t); jnp.gradient(x,axis=0);
        jnp.gradient(x,2.,axis=1); jnp.gradient(x,1.,2.); jnp.gradient(t,t*t);
        jnp.gradient(x,t*t,axis=0); jnp.gradient(x,t,axis=1); jnp.gradient(i);
        jnp.gradient(x,axis=()); jnp.gradient(t[:1]); jnp.gradient(t[:2]);
        jnp.gradient(x,1.,2.,3.); jnp.gradient(x,x); jnp.gradient(c); jnp.gradient(h,2);
        jnp.gradient(t,edge_order=2); jnp.gradient(x,t,np.float32([0,1,3,4]));
        jnp.gradient(np.zeros((2,2,2)),axis=(0,2))
    """,
    "borrowed": """
        jnp.frombuffer(b'12345678',dtype='int32');
        jnp.frombuffer(b'12345678','uint8',2,1);
        jnp.fromstring('1,2,3',dtype=int,sep=','); jnp.fromstring('1 2.5',sep=' ');
        jnp.fromfile('a'); jnp.fromiter([1]); jnp.array_str(t); jnp.array_repr(t)
    """,
    "calling": """
        jnp.vectorize((lambda x,y=1:x+y),excluded={'y'})(jnp.arange(3),y=2);
        jnp.vectorize((lambda x,y=1:x+y),excluded={1})(jnp.arange(3),2);
        jnp.vectorize((lambda x,y=1:x+y),excluded={1.5});
        jnp.vectorize((lambda x,y=1:x+y),excluded={-1});
        jnp.vectorize((lambda x,y=1:x+y),excluded={3})(1,2);
        jnp.vectorize(jnp.dot,signature='(k),(k)->()')(np.ones((2,3)),np.ones((4,1,3)));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(n)')(np.ones((2,3)),np.ones(3));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(n)')(np.ones((2,3)),np.ones(4));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(n)')(np.ones((2,3)));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(n)')(np.ones(3),np.ones(3));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(k)')(np.ones((2,3)),np.ones(3));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->(m)')(np.ones((2,3)),np.ones(3));
        jnp.vectorize(jnp.dot,signature='(n,m),(m)->()')(np.ones((2,3)),np.ones(3));
        jnp.vectorize(jnp.dot,signature='foo')(np.ones((2,3)),np.ones(3));
        jnp.vectorize(lambda x:(x,x.sum()),signature='(n)->(n),()')(np.ones((2,3)));
        jnp.vectorize(lambda x:(x,x.sum()),signature='(n)->(n)')(np.ones((2,3)));
        jnp.vectorize(lambda x:x,signature='(n)->(n),()')(np.ones((2,3)));
        jnp.vectorize(lambda x:x[:2],signature='(3)->(2)')(np.ones((2,3)));
        jnp.vectorize(lambda x:x[:2],signature='(3)->(2)')(np.ones((2,4)));
        jnp.vectorize(lambda x,y:x if y is None else x+y)(np.ones(2),None);
        jnp.vectorize(lambda x,y:x,signature='(n),(n)->(n)')(np.ones(2),None);
        jnp.vectorize(lambda x,y:x+y)(np.ones((2,1)),np.ones((1,3)));
        jnp.vectorize(lambda x,y:x+y)(np.ones((2,1)),np.ones((3,3)));
        jnp.vectorize(lambda x,y:x+y)(np.ones((1,1)),1.);
        jnp.vectorize(lambda x:[x,x])(np.ones((1,2)));
        jnp.vectorize(lambda x:(x,x))(np.ones((1,2)));
        jnp.vectorize(lambda x,y:x+y)(np.ones((2)),'a');
        jnp.piecewise(np.float32([-1,0,2]),[np.array([True,False,False]),np.array([False,False,True])],[-1,lambda x:x*3,7]);
        jnp.piecewise(np.float32([-1,0,2]),[np.array([True,False,False])],[1,2,3]);
        jnp.piecewise(np.arange(3),[np.arange(3)>1],[lambda x:x*1.5]);
        jnp.piecewise(np.arange(3),[np.arange(3)>1],[lambda x,a,b=1:x*a+b],2,b=3);
        jnp.apply_along_axis(jnp.sum,0,np.ones((2,3)));
        jnp.apply_along_axis(lambda x:x[:2],1,np.ones((2,3,2)));
        jnp.apply_along_axis(lambda x,a,b:x*a+b,1,np.ones((2,3)),2,b=1);
        jnp.apply_along_axis(jnp.sum,3,np.ones((2,3)));
        jnp.apply_over_axes(jnp.sum,np.ones((2,3,4)),(0,2));
        jnp.apply_over_axes(lambda a,i:a.sum(),np.ones((2,3,4)),(0,2));
        jnp.apply_over_axes(lambda a,i:a.cumsum(i),np.ones((2,3)),(0,1));
        jnp.fromfunction(lambda i,j:i+10*j,(2,3));
        jnp.fromfunction(lambda i,j:i+j,(2,3),dtype=int);
        jnp.fromfunction(lambda i,k:i*k,(2,),k=3); jnp.fromfunction(lambda i:i,3);
        jnp.gcd(12,-18); jnp.gcd(jnp.arange(3),np.uint8(2)); jnp.gcd(1.,2);
        jnp.lcm(np.arange(5),6); jnp.lcm(4,0); jnp.gcd(i,6); jnp.gcd(u,u[::-1].copy());
        jnp.gcd(i,u); jnp.lcm(i,u); jnp.lcm(12,-18); jnp.gcd(0,0); jnp.gcd(True,2);
        jnp.lcm(t,2)
    """,  # noqa: E501
}


# NumPy multiplies bytes in wider words and keeps the sign of a zero after infinity; of
# points in one place it takes the last for `interp`; it drops zeros of a product. The
# last three answers are no numbers.
UNLIKE_NUMPY = {
    "jnp.modf(v)",
    "jnp.cumulative_prod(u)",
    "jnp.vander(u)",
    "jnp.interp(np.float32([1,2]), np.float32([1,1,2,2]),np.float32([1,2,3,4]))",
    "jnp.cov(h)",
    "jnp.polymul(np.arange(3),np.arange(2))",
    "jnp.s_[1:2,...]",
    "jnp.array_str(t)",
    "jnp.array_repr(t)",
}


def calls(module):
    """The calls of functions of a module of `minijax.numpy`."""
    return [" ".join(text.split()) for text in CALLS[module].split(";")]


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
