"""Calls of public functions on tiny arrays, as texts: what eager code is made of.

`x`, `y`, `p` have four numbers (those of `p` are positive), `m`, `n`, `s` are matrices
of 4×4 (`s` is symmetric and positive), `i`, `k` have four integers, `b` four truths.
Some calls are made with larger arrays as well.
"""

import numpy as np

CALLS = {
    "operators and methods": """
        x+y; x-y; x*y; x/y; x+1.5; 2.*x; x**2; -x; x>y; x==y; i+k; i//2; i%3; i&k; ~i;
        b|b; m@n; m@x; x[1]; x[1:3]; x[i]; m[1]; m[:,1]; x.sum(); x.mean(); x.max();
        m.T; x.astype('int32'); x.reshape(2,2); x.at[1].set(2.); x.argmax()
    """,
    "elementwise": """
        jnp.add(x,y); jnp.subtract(x,y); jnp.multiply(x,y); jnp.divide(x,y); jnp.sin(x);
        jnp.cos(x); jnp.exp(x); jnp.log(p); jnp.tanh(x); jnp.sqrt(p); jnp.abs(x);
        jnp.sign(x); jnp.floor(x); jnp.round(x,1); jnp.square(x); jnp.power(p,y);
        jnp.maximum(x,y); jnp.minimum(x,y); jnp.clip(x,-1.,1.); jnp.where(b,x,y);
        jnp.where(b,x,0.); jnp.logaddexp(x,y); jnp.hypot(x,y); jnp.arctan2(x,y);
        jnp.nan_to_num(x); jnp.isnan(x); jnp.isfinite(x); jnp.logical_and(b,b);
        jnp.mod(x,2.); jnp.heaviside(x,y); jnp.sinc(x); jnp.deg2rad(x); jnp.log1p(p);
        jnp.expm1(x); jnp.logical_not(b); jnp.bitwise_xor(i,k); jnp.left_shift(i,1)
    """,
    "reductions": """
        jnp.sum(x); jnp.sum(m,0); jnp.mean(x); jnp.mean(m,1); jnp.std(x);
        jnp.var(m,0); jnp.prod(x); jnp.max(m,0); jnp.min(x); jnp.any(b); jnp.all(b);
        jnp.argmax(m,1);
        jnp.argmin(x); jnp.cumsum(x); jnp.cumprod(x); jnp.median(x); jnp.quantile(x,.3);
        jnp.percentile(x,30.); jnp.average(x); jnp.ptp(x); jnp.nansum(x);
        jnp.nanmean(x); jnp.count_nonzero(i); jnp.diff(x); jnp.trace(m); jnp.cov(m);
        jnp.corrcoef(m); jnp.allclose(x,y); jnp.array_equal(x,y); jnp.isclose(x,y)
    """,
    "shapes": """
        jnp.reshape(x,(2,2)); jnp.transpose(m); jnp.ravel(m); jnp.squeeze(x[None]);
        jnp.expand_dims(x,0); jnp.concatenate([x,y]); jnp.stack([x,y]);
        jnp.hstack([x,y]); jnp.vstack([x,y]); jnp.split(x,2); jnp.tile(x,2);
        jnp.repeat(x,2); jnp.flip(x); jnp.roll(x,1); jnp.rot90(m); jnp.pad(x,1);
        jnp.broadcast_to(x,(3,4)); jnp.moveaxis(m,0,1); jnp.swapaxes(m,0,1);
        jnp.diag(x); jnp.diagonal(m); jnp.tril(m); jnp.triu(m); jnp.take(x,i);
        jnp.append(x,y);
        jnp.take_along_axis(x,i,0); jnp.meshgrid(x,y); jnp.atleast_2d(x);
        jnp.column_stack([x,y]); jnp.insert(x,1,2.); jnp.delete(x,1)
    """,
    "creation": """
        jnp.zeros(4); jnp.ones((4,4)); jnp.full(4,2.); jnp.arange(4); jnp.eye(4);
        jnp.linspace(0.,1.,5); jnp.zeros_like(x); jnp.ones_like(x); jnp.identity(4);
        jnp.logspace(0.,1.,5); jnp.tri(4); jnp.vander(x); jnp.asarray(2.); jnp.array(x)
    """,
    "products": """
        jnp.matmul(m,n); jnp.dot(x,y); jnp.vdot(x,y); jnp.inner(x,y); jnp.outer(x,y);
        jnp.tensordot(m,n,1); jnp.einsum('ij,jk->ik',m,n); jnp.kron(x,y);
        jnp.cross(x[:3],y[:3]); jnp.convolve(x,y); jnp.correlate(x,y);
        jnp.polyval(x,y); jnp.interp(x,p,y); jnp.trapezoid(x); jnp.gradient(x)
    """,
    "linear algebra": """
        jnp.linalg.inv(m); jnp.linalg.solve(m,x); jnp.linalg.det(m);
        jnp.linalg.slogdet(m); jnp.linalg.norm(x); jnp.linalg.norm(m);
        jnp.linalg.cholesky(s); jnp.linalg.qr(m); jnp.linalg.eigh(s);
        jnp.linalg.svd(m); jnp.linalg.lstsq(m,x); jnp.linalg.matrix_power(m,3);
        jnp.linalg.pinv(m); jax.scipy.linalg.expm(m); jax.scipy.linalg.cho_factor(s);
        jax.scipy.linalg.solve_triangular(m,x)
    """,
    "sets, sorting, transforms": """
        jnp.sort(x); jnp.argsort(x); jnp.searchsorted(x,y); jnp.unique(i,size=4);
        jnp.bincount(i,length=5); jnp.digitize(x,p); jnp.histogram(x); jnp.isin(i,k);
        jnp.nonzero(b,size=4); jnp.lexsort((x,y)); jnp.fft.fft(x); jnp.fft.rfft(x);
        jnp.fft.fftfreq(4); jnp.polyfit(x,y,2); jnp.polyadd(x,y)
    """,
    "networks and probability": """
        jax.nn.relu(x); jax.nn.gelu(x); jax.nn.softmax(x); jax.nn.log_softmax(x);
        jax.nn.sigmoid(x); jax.nn.softplus(x); jax.nn.silu(x); jax.nn.one_hot(i,4);
        jax.nn.logsumexp(x); jax.nn.standardize(x); jax.scipy.special.gammaln(p);
        jax.scipy.special.erf(x); jax.scipy.special.xlogy(x,p);
        jax.scipy.special.entr(p); jax.scipy.stats.norm.logpdf(x);
        jax.random.split(key); jax.random.normal(key,(4,));
        jax.random.uniform(key,(4,));
        jax.random.permutation(key,x); jax.random.bernoulli(key)
    """,
}


# By the numbers in a vector, or in a row of a matrix: where NumPy returns a view, where
# it needs one pass and where several, and where a routine does most of the work.
LARGE = {
    10_000: "x+y; jnp.exp(x); x.sum(); jnp.sort(x); jnp.median(x)",
    1_000_000: """
        x+y; jnp.exp(x); x.sum(); jnp.cumsum(x); jnp.where(b,x,0.); x.reshape(2,-1);
        jnp.flip(x)
    """,
    256: "m@n; jnp.exp(m.T); jnp.max(m,0); jax.nn.softmax(m); jnp.linalg.solve(m,n)",
    512: "m@n; jnp.linalg.inv(m)",
}


def split(calls):
    """The texts of some calls, in order."""
    return [text.strip() for text in " ".join(calls.split()).split(";")]


def texts():
    """The texts of all calls with tiny arrays, in order."""
    return split("; ".join(CALLS.values()))


def large():
    """The texts of all calls with larger arrays by their names, and the sizes."""
    return {
        f"{text}, {size:,}": (text, size)
        for size, calls in LARGE.items()
        for text in split(calls)
    }


def arrays(jax, size=4):
    """The arrays that the texts name, of a package; no large matrices.

    Args:
      jax: minijax or jax.
      size: how many numbers a vector has, and a row of a matrix.
    """
    make, rng, rows = jax.numpy.asarray, np.random.default_rng(0), min(size, 512)
    shapes = (rows, rows), (rows, rows), (2, size)
    m, n, (x, y) = (rng.normal(size=shape) for shape in shapes)
    floats = {"x": x, "y": y, "p": np.sort(np.abs(x) + 0.5), "m": m, "n": n}
    floats["s"] = m @ m.T + np.eye(rows)
    found = {name: make(value.astype("float32")) for name, value in floats.items()}
    order, choice = rng.permutation(size), rng.integers(0, size, size)
    found |= {"i": make(np.int32(order)), "k": make(np.int32(choice))}
    found |= {"b": make(rng.random(size) < 0.75)}
    return found | {"key": jax.random.PRNGKey(0), "jax": jax, "jnp": jax.numpy}


def functions(jax):
    """The calls of a package: functions without arguments by their names."""
    tiny, found = arrays(jax), large()
    sizes = {size: arrays(jax, size) for _, size in found.values()}
    return {text: eval(f"lambda: {text}", tiny) for text in texts()} | {
        name: eval(f"lambda: {text}", sizes[size])
        for name, (text, size) in found.items()
    }
