"""Calls in which an integer decides what the program is: axes, sizes, offsets, counts.

In each, `n` stands for the integer. `KINDS` are the ways in which users write a 1.
"""

import numpy as np

KINDS = {  # what is refused comes first: JAX's caches take 1.0 for the 1 of before
    "tracer": None,
    "float": lambda jax: 1.0,
    "numpy_float": lambda jax: np.float32(1),
    "numpy_bool": lambda jax: np.True_,
    "row": lambda jax: np.array([1]),
    "array": lambda jax: jax.numpy.array(1),
    "zero_d": lambda jax: np.array(1),
    "bool": lambda jax: True,
    "numpy": lambda jax: np.int64(1),
    "int": lambda jax: 1,
}

OF_NUMPY = """
    all(M > 2, n) amax(M, n) any(M > 2, axis=n) append(M, M, axis=n)
    apply_along_axis(jnp.sum, n, M) apply_over_axes(jnp.sum, M, [n]) argmax(M, n)
    argmin(M, axis=n) argpartition(M, n) argpartition(M, 1, axis=n) argsort(M, n)
    array_split(V, n) array_split(M, 2, axis=n) around(F, n) average(M, axis=n)
    bincount(V, length=n) bartlett(n) blackman(n) hamming(n) hanning(n) kaiser(n, 2.)
    broadcast_to(V, (n, 4)) concatenate([M, M], axis=n) count_nonzero(M, axis=n)
    cross(C, C, axis=n) cumsum(M, n) cumprod(M, axis=n) cumulative_sum(M, axis=n)
    delete(M, n) delete(M, 0, axis=n) diag(V, n) diag(M, n) diagflat(V, n)
    diag_indices(n) diag_indices(2, n) diagonal(M, n) diagonal(M, 0, 0, n) diff(V, n)
    diff(M, axis=n) dsplit(T, n) hsplit(M, n) vsplit(M, n) empty(n) empty((2, n))
    expand_dims(M, n) eye(n) eye(3, n) eye(3, k=n) flip(M, n) full(n, 2)
    full((2, n), 2) fromfunction(lambda i: i, (n,)) geomspace(1., 8., n)
    gradient(F, axis=n) histogram(F, n) identity(n) indices((2, n)) insert(M, n, 7)
    insert(M, 0, 7, axis=n) isin(M, n) linspace(0., 1., n)
    linspace(V, V + 1., 3, axis=n) logspace(0., 1., n) max(M, n) mean(M, n)
    median(F, n) min(M, n) moveaxis(M, 0, n) moveaxis(M, n, 0) nancumsum(F, n)
    nanmean(F, n) nanmedian(F, n) nanpercentile(F, 30., n) nansum(F, n) nanstd(F, n)
    nanvar(F, n, ddof=0) nanvar(F, ddof=n) nonzero(V, size=n) argwhere(V, size=n)
    flatnonzero(V, size=n) ones(n) ones((n, 2)) packbits(M > 2, axis=n) pad(V, n)
    pad(V, (0, n)) pad(M, ((n, 0), (0, 0))) partition(V, n) partition(M, 0, axis=n)
    percentile(F, 30., n) polyder(V, n) polyint(V, n) prod(M, n) ptp(M, n)
    quantile(F, .3, axis=n) repeat(V, n) repeat(M, 2, axis=n)
    repeat(V, 2, total_repeat_length=n) reshape(M, (n, -1)) reshape(V[:1], n)
    resize(V, n) resize(V, (2, n)) roll(V, n) roll(M, 2, n) rollaxis(M, n)
    rollaxis(M, 0, n) rot90(M, n) round(F, n) size(M, n) sort(M, n) split(V, n)
    split(M.T, 1, axis=n) squeeze(O, n) stack([V, V], n) std(F, n) std(F, ddof=n)
    sum(M, n) sum(M, (0, n)) swapaxes(M, 0, n) take(M, V % 2, n)
    take_along_axis(M, M % 2, n) tensordot(M, M.T, n) tensordot(M, M, ((n,), (n,)))
    tile(V, n) tile(V, (2, n)) trace(M, n) trapezoid(F, axis=n) transpose(M, (0, n))
    transpose(M, (n, 0)) tri(n) tri(3, n) tri(3, 3, n) tril(M, n) triu(M, k=n)
    tril_indices(n) triu_indices(3, k=n) tril_indices(3, m=n) unique(V, size=n)
    union1d(V, V, size=n) setdiff1d(V, V[:1], size=n) intersect1d(V, V, size=n)
    unpackbits(V.astype('uint8'), count=n) unpackbits(M.astype('uint8'), axis=n)
    unravel_index(0, (n, 2)) unstack(M, axis=n) unwrap(F, axis=n) vander(V, n)
    var(F, n) vecdot(M, M, axis=n) zeros(n) zeros((2, n)) zeros_like(M, shape=n)
    ravel_multi_index((V, V), (n, 9), mode='clip') arange(n) arange(0, 4, n)
    nanargmax(F, n) linalg.norm(F, axis=n) linalg.matrix_power(S, n)
    linalg.vector_norm(F, axis=n) linalg.cross(C, C, axis=n)
    linalg.diagonal(M, offset=n) linalg.tensorinv(S.reshape(2, 2, 1)[..., 0], n)
    linalg.tensorsolve(S, F[0, :2], (n,)) linalg.trace(M, offset=n)
    linalg.vecdot(M, M, axis=n) linalg.tensordot(M, M.T, axes=n) fft.fft(F, n)
    fft.fft(F, axis=n) fft.fft2(F, s=(2, n)) fft.fft2(F, axes=(0, n))
    fft.fftn(F, axes=[n]) fft.fftfreq(n) fft.rfftfreq(n) fft.rfft(F, n)
    fft.irfft(F, n) fft.fftshift(F, n) fft.fftshift(F, (0, n))
    fft.ifftshift(F, axes=n) fft.hfft(F, n) fft.ihfft(F, axis=n)
"""

OF_LAX = """
    argmax(M, n, jnp.int32) argmin(M, axis=n, index_dtype=jnp.int32)
    approx_max_k(F, n) approx_max_k(F, 1, n) broadcast(V, (n,))
    broadcast_in_dim(V, (2, 4), (n,)) broadcast_in_dim(V, (n, 4), (1,))
    broadcasted_iota(int, (2, 3), n) broadcasted_iota(int, (2, n), 0)
    broadcast_to_rank(V, n) collapse(M, n) collapse(T, 0, n) concatenate([M, M], n)
    cumsum(M, n) cummax(M, axis=n) cumlogsumexp(F, n) dynamic_index_in_dim(M, 0, n)
    dynamic_slice(V, (0,), (n,)) dynamic_slice(V, (n,), (2,))
    dynamic_slice_in_dim(V, 0, n) dynamic_slice_in_dim(M, 0, 1, n)
    dynamic_update_slice_in_dim(M, M[:, :1], 0, n) expand_dims(M, (n,)) full((n,), 2)
    full(n, 2) index_in_dim(M, n) index_in_dim(M, 0, n) index_take(M, (V,), (n,))
    iota(int, n) integer_pow(F, n) pad(V, 0, [(n, 0, 0)]) pad(V, 0, [(0, 0, n)])
    reduce(M, 0, jax.lax.add, (n,)) reduce_sum(M, (n,)) reduce_max(M, axes=(n,))
    reduce_precision(F, n, 3) reduce_precision(F, 5, mantissa_bits=n)
    reduce_window(M, 0, jax.lax.add, (n, 1), (1, 1), 'VALID')
    reduce_window(M, 0, jax.lax.add, (1, 1), (1, n), 'VALID') reshape(V[:1], (n,))
    rev(M, (n,)) scan(lambda c, _: (c + 1, c), 0, None, n)
    map(jnp.sin, V, batch_size=n) slice(V, (n,), (3,)) slice(V, (0,), (n,))
    slice(V, (0,), (3,), (n,)) slice_in_dim(V, n, 3) slice_in_dim(V, 0, n)
    slice_in_dim(V, 0, 3, n) slice_in_dim(M, 0, 1, axis=n) sort(M, n)
    sort((V, V), num_keys=n) sort_key_val(M, M, n) split(V, (n, 3))
    split(M, (1, 2), axis=n) squeeze(O, (n,)) stack([V, V], n) tile(V, (n,))
    top_k(V, n) top_k(M, 1, axis=n) transpose(M, (n, 0))
    fori_loop(0, n, lambda i, c: c + i, 0) fori_loop(n, 3, lambda i, c: c + i, 0)
    associative_scan(jnp.add, M, axis=n) conv_general_dilated(B, B, (n,), 'VALID')
    conv_general_dilated(B, B, (1,), [(n, 0)])
    conv_general_dilated(B, B, (1,), 'VALID', lhs_dilation=(n,))
    conv_general_dilated(B, B, (1,), 'VALID', rhs_dilation=(n,))
    conv_general_dilated(B, B, (1,), 'VALID', feature_group_count=n)
    conv_general_dilated(B, B, (1,), 'VALID', batch_group_count=n)
    dot_general(M, M, (((n,), (n,)), ((), ()))) switch(n, [jnp.sin, jnp.cos], F)
    conv_general_dilated_patches(B, (n,), (1,), 'VALID')
    linalg.lu_pivots_to_permutation(V[:1] * 0, n)
"""

OF_REST = """
    nn.one_hot(V, n) nn.one_hot(V, 4, axis=n) nn.softmax(F, n) nn.log_softmax(F, n)
    nn.logsumexp(F, n) nn.standardize(F, n) nn.glu(G, n)
    nn.initializers.orthogonal(column_axis=n)(K, (3, 3))
    nn.initializers.glorot_normal(in_axis=n, out_axis=0)(K, (3, 3))
    nn.initializers.he_uniform(out_axis=n, in_axis=0)(K, (3, 3))
    nn.initializers.normal()(K, (n, 2)) nn.initializers.zeros(K, (n, 2))
    random.split(K, n) random.fold_in(K, n) random.normal(K, (n,)) random.normal(K, n)
    random.uniform(K, (2, n)) random.bits(K, (n,)) random.randint(K, (n,), 0, 5)
    random.permutation(K, n) random.permutation(K, M, n) random.choice(K, n)
    random.choice(K, V, (n,)) random.choice(K, M, (1,), axis=n)
    random.categorical(K, F, n) random.ball(K, n) random.orthogonal(K, n)
    random.orthogonal(K, 3, m=n) random.key(n) random.PRNGKey(n)
    random.exponential(K, (n,)) random.dirichlet(K, F[0], (n,))
    random.gamma(K, 2., (n,)) random.truncated_normal(K, -1., 1., (n,))
    scipy.special.logsumexp(F, n) scipy.special.multigammaln(F + 3, n)
    scipy.special.bessel_jn(F[0], v=n) scipy.special.log_ndtr(F, n)
    scipy.special.polygamma(n, F + 1.) scipy.special.bernoulli(n)
    scipy.special.factorial(n) scipy.special.comb(4, n) scipy.linalg.dft(n)
    scipy.linalg.hilbert(n) scipy.linalg.invhilbert(n) scipy.linalg.hadamard(n)
    scipy.linalg.pascal(n) scipy.linalg.helmert(n) scipy.linalg.invpascal(n)
    scipy.signal.detrend(F, n) scipy.signal.welch(W, nperseg=n)
    scipy.signal.welch(W, nperseg=4, noverlap=n) scipy.signal.stft(W, nperseg=n)
    scipy.signal.welch(W2, nperseg=4, axis=n) scipy.signal.fftconvolve(F, F, axes=n)
    scipy.signal.detrend(W, bp=n) scipy.fft.dct(F, n=n) scipy.fft.dct(F, axis=n)
    scipy.fft.dctn(F, s=(2, n)) scipy.fft.dctn(F, axes=(0, n))
    scipy.fft.idct(F, axis=n) scipy.integrate.trapezoid(F, axis=n)
    scipy.stats.mode(V[None], n) scipy.stats.rankdata(F, axis=n) scipy.stats.sem(F, n)
    scipy.stats.sem(F, ddof=n) ops.segment_sum(V, V % 2, n)
    ops.segment_max(V, V % 2, num_segments=n)
    ops.segment_sum(V, V % 2, 2, bucket_size=n) image.resize(F, (2, n), 'linear')
    image.scale_and_translate(F, (2, 2), (n,), jnp.ones(1), jnp.zeros(1), 'linear')
    image.scale_and_translate(F, (2, n), (0,), jnp.ones(1), jnp.zeros(1), 'linear')
    scipy.ndimage.map_coordinates(F, [V / 4., V / 4.], n) vmap(jnp.sum, n)(M)
    vmap(lambda v: v, 0, n)(M) vmap(lambda: 2., axis_size=n)()
    grad(lambda x, y: x * y, n)(2., 3.) jacfwd(lambda x, y: x * y, n)(2., 3.)
    value_and_grad(lambda x, y: x * y, n)(2., 3.)
    grad(lambda x, y: x * y, (0, n))(2., 3.)
    jit(lambda x, y: x * y, static_argnums=n)(2., 3)
    jit(lambda x, y: x * y, static_argnums=(n,))(2., 3)
    jit(lambda x, y: x * y, donate_argnums=n)(2., 3.)
    hessian(lambda x, y: x * y, n)(2., 3.)
    checkpoint(lambda x, y: x * y, static_argnums=n)(2., 3)
    ShapeDtypeStruct((2, n), jnp.float32)
"""

OF_ARRAYS = """
    sum(n) mean(axis=n) argmax(n) cumsum(n) reshape(n, -1) reshape((n, -1))
    repeat(2, n) repeat(n) swapaxes(0, n) transpose(n, 0) diagonal(n) trace(n) sort(n)
    take(0, n) round(n) ptp(n) std(n) max((0, n)) argsort(n) var(ddof=n)
"""


def calls_of(text, prefix):
    """Return the calls in a text, which stand apart by blanks outside of brackets."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text + " "):
        depth += (letter in "([") - (letter in ")]")
        if letter.isspace() and not depth:
            found.append(text[start:place].strip())
            start = place
    return [prefix + call for call in found if "(" in call]


CALLS = [
    *calls_of(OF_NUMPY, "jnp."),
    *calls_of(OF_LAX, "jax.lax."),
    *calls_of(OF_REST, "jax."),
    *calls_of(OF_ARRAYS, "M."),
]


def operands(jax):
    """Return the arrays that the calls name."""
    jnp = jax.numpy
    F = jnp.array([[0.5, 1.5, 0.25], [2.5, 3.0, 1.0]])
    return {
        "jax": jax, "jnp": jnp, "F": F, "V": jnp.arange(4), "K": jax.random.key(0),
        "M": jnp.arange(6).reshape(2, 3), "T": jnp.arange(8).reshape(2, 2, 2),
        "S": jnp.array([[2.0, 0.0], [1.0, 2.0]]), "O": jnp.ones((2, 1)),
        "C": jnp.arange(9).reshape(3, 3), "B": jnp.ones((1, 1, 3)),
        "G": jnp.ones((2, 2)), "W": jnp.arange(16.0), "W2": jnp.ones((2, 16)),
    }  # fmt: skip


def outcome(jax, call, kind, known):
    """Return the types of the results of a call, or the error that it raises.

    Nothing is computed: the call is traced. `known` are its `operands`.
    """

    def at(*n):
        return eval(call, {**known, "n": n[0] if n else value})

    value = KINDS[kind](jax) if KINDS[kind] else None
    try:
        found = jax.eval_shape(at, *([] if KINDS[kind] else [1]))
    except Exception as error:
        return error
    return [(x.shape, kind_of(x)) for x in jax.tree_util.tree_leaves(found)]


def kind_of(x):
    """Return the name of a dtype; keys have none that is the same in both packages."""
    return str(x.dtype) if getattr(x.dtype, "kind", "V") in "biufc" else "key"
