"""Values, programs and mistakes on which minijax and JAX are compared."""

import numpy as np

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

try:
    import ml_dtypes
except ModuleNotFoundError:
    DTYPES.remove("bfloat16")

UNARY = """
    neg abs sign square floor ceil is_finite exp exp2 expm1 log log1p sqrt rsqrt cbrt
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh logistic erf erfc
    erf_inv lgamma digamma real imag conj bitwise_not population_count clz reciprocal
    round
""".split()
BINARY = """
    add sub mul div rem max min nextafter atan2 pow complex eq ne lt le gt ge
    bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical
    shift_right_arithmetic
""".split()
REDUCTIONS = """
    reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor
    argmax argmin cumsum cumprod cummax cummin cumlogsumexp
""".split()

# XLA computes these with approximations of its own.
TOLERANCES = dict.fromkeys(
    "tan asin acos atan asinh acosh atanh sinh cosh tanh log1p expm1 logistic".split(),
    1e-5,
) | {"erf_inv": 1e-5, "lgamma": 1e-4, "digamma": 1e-4, "erfc": 1e-5, "pow": 1e-4}


def dtype_of(name):
    """The NumPy dtype of this name."""
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def specimen(name):
    """Numbers of a dtype at which things go wrong."""
    dtype = dtype_of(name)
    if name == "bool":
        return np.array([False, True])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        inside = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 100]
        if dtype.kind == "i":
            inside += [-1, -2, -7, -31, -100]
        return np.array(
            [*inside, ends.min, ends.min + 1, ends.max - 1, ends.max], dtype
        )
    special = [0.0, -0.0, np.inf, -np.inf, np.nan]
    usual = [
        0.25,
        -0.25,
        0.5,
        -0.5,
        1,
        -1,
        1.5,
        -1.5,
        2,
        2.5,
        -2.5,
        3,
        -7.25,
        100,
        -300,
    ]
    if dtype.kind == "c":
        return np.array([a + 1j * b for a in usual[:9] for b in usual[:9]], dtype)
    return np.array([*special, *usual], dtype)


def numbers(shape, name, seed=0):
    """Numbers of no special kind."""
    rng = np.random.default_rng(seed)
    dtype = dtype_of(name)
    if name == "bool":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    parts = rng.normal(size=(2, *shape))
    values = parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]
    return np.asarray(values).astype(dtype)


# JAX's lax refuses these numbers of Python; ours take the dtype of the array.
LENIENT = """
    lax.add(h, 1.0) | lax.mul(v, 2) | lax.pow(z, 2.0) | lax.clamp(0, v, 1)
    lax.max(u, 3) | lax.pad(v, 0, ((1, 1, 0),)) | lax.select_n(True, s, 1)
"""
LENIENT = [
    text.strip() for line in LENIENT.strip().splitlines() for text in line.split(" | ")
]


def unspecified(name, x):
    """Where a function of complex numbers sits on a cut, and may choose a side."""
    cut = np.zeros(x.shape, bool)
    if x.dtype.kind == "c" and name in (
        "atanh",
        "asin",
        "acos",
        "acosh",
        "atan",
        "asinh",
    ):
        cut = (x.imag == 0) | (x.real == 0)
    if name == "exp2" and x.dtype.name == "bfloat16":
        cut = x == 100  # XLA is a third off there
    if name == "digamma" and x.dtype.kind in "fV":
        cut = ~np.isfinite(x.astype(np.float64)) | (x == 0)
    return cut


def unspecified_pair(name, x, y):
    """Where results depend on how a processor rounds or orders."""
    none = np.zeros(x.shape, bool)
    if name == "pow" and x.dtype.kind == "c":
        return (x == 0) | (np.abs(x) > 1e3) | (np.abs(y) > 1e3)
    if name == "atan2" and x.dtype.kind == "c":
        with np.errstate(all="ignore"):
            return np.abs(np.log((y + 1j * x) / np.sqrt(y * y + x * x)).imag) > 3.1
    return none


def reductions(name):
    """Shapes and further arguments for a reduction."""
    if name.startswith("arg"):
        return [((5,), (0, int)), ((3, 4), (1, np.int32)), ((3, 4), (0, np.int64))]
    if name.startswith("cum"):
        return [((5,), ()), ((3, 4), (1,)), ((3, 4), (0, True)), ((0, 3), (0,))]
    return [((5,), ((0,),)), ((3, 4), ((1,),)), ((3, 4), ((0, 1),)), ((3, 4), ((),)),
            ((0, 3), ((0,),)), ((3, 0), ((0,),)), ((2, 3, 4), ((2, 0),))]  # fmt: skip


def environment(package, lax, asarray):
    """What programs may name: arrays `x` (2, 3), `v` (3,), `i`, `b`, `z` and others."""
    x = np.arange(6.0).reshape(2, 3) - 2.5
    return {
        "lax": lax, "np": np, "package": package,
        "array": lambda *given: asarray(np.array(*given)),
        "x": asarray(x), "v": asarray(x[0]), "i": asarray(np.arange(3)),
        "b": asarray(np.array([True, False, True])), "u": asarray(np.uint8([1, 2, 3])),
        "z": asarray(np.array([1 + 2j, 3j, 1])), "t": asarray(np.ones((2, 3, 4))),
        "w": asarray(2.0), "k": asarray(3), "e": asarray(np.zeros((0, 3))),
        "h": asarray(np.float16([1, 2, 3])), "s": asarray(np.float64(2)),
    }  # fmt: skip


PROGRAMS = """
    lax.add(1, 2) | lax.add(w, 1.0) | lax.mul(2.0, w) | lax.mul(v, 2.0) | lax.add(s, 1.0)
    lax.add(v, np.float64(1)) | lax.add(s, x) | lax.add(array(np.ones((1, 3))), x)
    lax.add(array(np.ones((2, 1))), array(np.ones((1, 3)))) | lax.add(e, e)
    lax.sin(1.0) | lax.complex(1.0, 2.0) | lax.neg(k) | lax.eq(w, 1.0) | lax.lt(i, 2)
    lax.add(np.ones(2), np.ones(2)) | lax.add(np.arange(2), np.arange(2))
    lax.pow(2.0, 3) | lax.pow(v, i) | lax.pow(x, 2) | lax.pow(w, 2.0) | lax.pow(z, i)
    lax.pow(w, i) | lax.pow(w, k) | lax.pow(v, k)
    lax.integer_pow(v, -2) | lax.integer_pow(i, 3) | lax.integer_pow(v, 0)
    lax.integer_pow(z, 3) | lax.integer_pow(2.0, 2) | lax.integer_pow(i, 0)
    lax.integer_pow(h, -1) | lax.integer_pow(z, -2) | lax.integer_pow(u, 7)
    lax.round(v) | lax.round(v, lax.RoundingMethod.TO_NEAREST_EVEN)
    lax.round(array([0.5, 1.5, -0.5, 2.5, 0.49999997])) | lax.round(-2.5)
    lax.reduce_precision(v, 5, 2) | lax.reduce_precision(v, 11, 52) | lax.reduce_precision(v, 8, 23) | lax.reduce_precision(h, 8, 7) | lax.reduce_precision(array([1e5, 1e-8, np.nan]), 5, 10)
    lax.reduce_precision(array([1.1, 65504., 65530., 6e-5, -3.3]), 5, 10)
    lax.select_n(b, v, v) | lax.select_n(i, v, v, v)
    lax.select_n(array([0, 1, 7, -3]), array([1, 2, 3, 4]), array([5, 6, 7, 8]), array([9, 9, 9, 9]))
    lax.select_n(True, 1.0, 2.0) | lax.select_n(b, v) | lax.select_n(array(True), v, v)
    lax.select(b, v, v) | lax.select_n(array(1), i, i, i) | lax.select_n(b, b, b)
    lax.clamp(0.0, v, 1.0) | lax.clamp(v, v, 1.0) | lax.clamp(2.0, v, 1.0)
    lax.clamp(np.nan, v, 1.0) | lax.clamp(0, i, 1) | lax.clamp(array(True), b, array(True))
    lax.clamp(0.0, 3.0, 1.0)
    lax.conj(z) | lax.conj(v) | lax.reciprocal(v) | lax.nextafter(v, s)
    lax.broadcast_in_dim(v, (2, 3), (1,)) | lax.broadcast_in_dim(v, (3, 2), (0,))
    lax.broadcast_in_dim(1.0, (2,), ()) | lax.broadcast_in_dim(w, (), ())
    lax.broadcast_in_dim(array(np.ones((3, 1))), (3, 4), (0, 1)) | lax.broadcast(v, (2, 2))
    lax.broadcast_in_dim(i, (0, 3), (1,)) | lax.broadcast_to_rank(v, 3) | lax.broadcast_to_rank(x, 1)
    lax.expand_dims(x, (0, 2)) | lax.expand_dims(v, (-1,)) | lax.expand_dims(v, ())
    lax.reshape(x, (3, 2)) | lax.reshape(x, (6,)) | lax.reshape(x, 6) | lax.reshape(x, (3, 2), (1, 0))
    lax.reshape(e, (3, 0, 2)) | lax.reshape(s, (1, 1)) | lax.reshape(1.0, (1,)) | lax.reshape(x, (2, 3))
    lax.collapse(t, 0, 2) | lax.collapse(t, 1) | lax.collapse(t, 0) | lax.collapse(t, -2)
    lax.transpose(x, (1, 0)) | lax.transpose(t, (2, 0, 1)) | lax.transpose(v, (0,)) | lax.transpose(s, ())
    lax.squeeze(array(np.ones((1, 3, 1))), (0,)) | lax.squeeze(array(np.ones((1, 3, 1))), (-1, 0))
    lax.squeeze(x, ()) | lax.rev(x, (0, 1)) | lax.rev(x, (1,)) | lax.rev(x, ())
    lax.slice(v, (1,), (3,)) | lax.slice(x, (0, 0), (2, 3), (1, 2)) | lax.slice(v, (1,), (1,))
    lax.slice_in_dim(x, None, None, 2, axis=-1) | lax.slice_in_dim(x, -2, -1, axis=1)
    lax.slice_in_dim(x, 1, 2) | lax.index_in_dim(x, -1, 1) | lax.index_in_dim(x, 1, 0, False)
    lax.pad(v, 0.0, ((1, 2, 1),)) | lax.pad(v, 1.0, ((-1, -1, 0),)) | lax.pad(v, 0.0, ((-1, 0, 2),))
    lax.pad(x, 0.0, ((0, 1, 0), (2, -1, 1))) | lax.pad(e, 1.0, ((1, 1, 1), (0, 0, 0)))
    lax.pad(v, 0.0, ((-3, 0, 0),)) | lax.pad(i, 7, ((1, 1, 0),)) | lax.pad(v, 0.0, ((-2, 4, 1),))
    lax.concatenate([x, x], 0) | lax.concatenate([x, x, x], 1) | lax.concatenate([x], 0)
    lax.concatenate([x, e], 0) | lax.concatenate([v, v], dimension=0)
    lax.convert_element_type(v, np.int32) | lax.convert_element_type(1.0, np.int32)
    lax.convert_element_type(1, float) | lax.convert_element_type(w, float) | lax.convert_element_type(k, int)
    lax.convert_element_type(v, float) | lax.convert_element_type(z, np.float32)
    lax.convert_element_type(z, bool) | lax.convert_element_type(z, np.int8) | lax.convert_element_type(True, int)
    lax.bitcast_convert_type(v, np.int32) | lax.bitcast_convert_type(v, np.int8)
    lax.bitcast_convert_type(array(np.zeros((3, 4), 'i1')), np.int32) | lax.bitcast_convert_type(x, np.uint16)
    lax.iota(np.int32, 3) | lax.iota(float, 4) | lax.iota(np.complex64, 2) | lax.iota(np.int8, 0)
    lax.broadcasted_iota(np.float32, (2, 3), 1) | lax.broadcasted_iota(int, (2, 3), 0)
    lax.full((2,), 3) | lax.full((2,), 3.5) | lax.full((2,), 3.5, np.int32) | lax.full(3, 1.0)
    lax.full((2,), s) | lax.full((2,), w) | lax.full((2, 2), np.nan, np.int32) | lax.full((), 1j)
    lax.full((0,), True) | lax.full_like(i, 1.5) | lax.full_like(3.0, 1.5) | lax.full_like(x, 1, shape=(2,))
    lax.full_like(x, 1, np.int8) | lax.full_like(w, 2)
    lax.reduce_max(array([1.0, np.nan]), (0,)) | lax.reduce_max(z, (0,)) | lax.reduce_min(e, (0,))
    lax.argmax(array([1.0, np.nan, 3.0]), 0, int) | lax.argmin(array([2, 1, 1]), 0, np.int8)
    lax.argmax(b, 0, np.uint16) | lax.cummax(array([1.0, np.nan, 2.0])) | lax.cumprod(z)
    lax.cumsum(x, 1, reverse=True) | lax.cumsum(v, axis=0)
    lax.dot(x, v) | lax.dot(v, v) | lax.dot(v, v, preferred_element_type=np.float16) | lax.dot(x, lax.transpose(x, (1, 0)))
    lax.dot_general(x, v, (((1,), (0,)), ((), ()))) | lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))))
    lax.dot_general(x, i, (((1,), (0,)), ((), ()))) | lax.dot_general(2.0, v, (((), ()), ((), ())))
    lax.dot_general(t, t, (((2,), (2,)), ((0,), (0,)))) | lax.dot_general(t, t, (((0, 2), (0, 2)), ((), ())))
    lax.dot_general(t, x, (((0, 1), (0, 1)), ((), ()))) | lax.dot_general(v, v, (((), ()), ((), ())))
    lax.dot_general(u, u, (((0,), (0,)), ((), ()))) | lax.dot_general(b, b, (((0,), (0,)), ((), ())))
    lax.dot_general(u, u, (((0,), (0,)), ((), ())), preferred_element_type=np.int32)
    lax.dot_general(h, h, (((0,), (0,)), ((), ()))) | lax.dot_general(z, v, (((0,), (0,)), ((), ())))
    lax.dot_general(h, v, (((0,), (0,)), ((), ()))) | lax.dot_general(e, e, (((0,), (0,)), ((), ())))
    lax.dot_general(x, v, (((1,), (0,)), ((), ())), precision='highest') | lax.batch_matmul(t, lax.transpose(t, (0, 2, 1)))
    lax.dot_general(x, v, (((1,), (0,)), ((), ())), lax.Precision.HIGHEST) | lax.dot_general(w, w, (((), ()), ((), ())))
    lax.broadcast_shapes((1, 3), (2, 1)) | lax.broadcast_shapes((3,), (2, 3))
    package.config.jax_enable_x64 | package.device_count('cpu') | package.local_device_count()
"""  # noqa: E501
PROGRAMS = [
    text.strip() for line in PROGRAMS.strip().splitlines() for text in line.split(" | ")
]

MISTAKES = """
    lax.add(v, array(np.ones(4))) | lax.add(v, x) | lax.add(v, i) | lax.add(i, 1.0) | lax.add(b, b)
    lax.add(i, True) | lax.add(1.0, 2) | lax.add('a', v) | lax.add(v, None) | lax.add(v, [1.0, 2.0, 3.0])
    lax.sin(i) | lax.sin(1) | lax.sin('a') | lax.sin([1.0]) | lax.sin(None) | lax.sin(np.array(['a']))
    lax.sin(np.array([object()])) | lax.neg(b) | lax.floor(i) | lax.real(v) | lax.bitwise_and(v, v)
    lax.lt(z, z) | lax.pow(i, i) | lax.pow(i, 2) | lax.pow(v, b) | lax.integer_pow(i, -1)
    lax.integer_pow(b, 2) | lax.population_count(b) | lax.complex(h, h) | lax.atan2(v, z) | lax.nextafter(z, z)
    lax.select_n(b, v, 1.0) | lax.select_n(b, v, i) | lax.select_n(v, v, v) | lax.select_n(b, v, v, v)
    lax.select_n(b, x, x) | lax.select(b, v, i) | lax.clamp(array([0.0, 1.0]), v, 1.0)
    lax.broadcast_in_dim(v, (2, 3), (0,)) | lax.broadcast_in_dim(v, (2, 3), (-1,)) | lax.broadcast_in_dim(v, (2, 3), ())
    lax.broadcast_in_dim(v, (2, 3), (2,)) | lax.broadcast_in_dim(x, (2, 3), (1, 0)) | lax.broadcast_in_dim(x, (2,), (0, 1))
    lax.broadcast_in_dim(v, (-3,), (0,)) | lax.expand_dims(x, (0, 0)) | lax.expand_dims(x, (7,)) | lax.expand_dims(x, 0)
    lax.reshape(x, (-1,)) | lax.transpose(x, (0,)) | lax.transpose(x, (0, 2)) | lax.transpose(x, (-1, 0))
    lax.squeeze(x, (0,)) | lax.squeeze(x, (5,)) | lax.squeeze(array(np.ones((1, 2))), (0, 0)) | lax.squeeze(x, None)
    lax.rev(x, (0, 0)) | lax.rev(x, (5,)) | lax.rev(x, (-1,)) | lax.slice(v, (2,), (1,)) | lax.slice(v, (0,), (3,), (-1,))
    lax.slice(v, (0,), (5,)) | lax.slice_in_dim(x, 0, 9, axis=1) | lax.index_in_dim(x, 5, 0)
    lax.pad(v, 0.0, ((-2, -2, 0),)) | lax.pad(v, 0.0, ((1, 2, -1),)) | lax.pad(v, 0.0, ())
    lax.pad(v, v, ((1, 1, 0),)) | lax.concatenate([x, x], 2) | lax.concatenate([x, x], -1) | lax.concatenate([x, v], 0)
    lax.concatenate([v, i], 0) | lax.concatenate([], 0) | lax.concatenate([1.0, 2.0], 0) | lax.concatenate([x, lax.transpose(x, (1, 0))], 0)
    lax.bitcast_convert_type(v, bool) | lax.bitcast_convert_type(h, np.float64) | lax.convert_element_type(v, None)
    lax.iota(bool, 2) | lax.iota(float, -1) | lax.broadcasted_iota(float, (2, 3), 2) | lax.full((2,), v)
    lax.reduce_sum(x, (2,)) | lax.reduce_sum(x, (-1,)) | lax.reduce_sum(x, (0, 0)) | lax.reduce_sum(b, (0,)) | lax.reduce_and(v, (0,))
    lax.argmax(v, 1, int) | lax.argmax(v, 0, float) | lax.argmax(z, 0, int) | lax.argmax(e, 0, int) | lax.argmax(v, -1, int)
    lax.cumsum(v, 1) | lax.cumsum(v, -1) | lax.cumsum(b, 0) | lax.cummax(b, 0)
    lax.dot(x, x) | lax.dot(1.0, v) | lax.dot_general(x, v, (((0,), (0,)), ((), ()))) | lax.dot_general(x, v, (((2,), (0,)), ((), ())))
    lax.dot_general(x, v, (((1,), (0,)), ((0,), ()))) | lax.dot_general(x, x, (((1,), (1,)), ((1,), (1,))))
    lax.dot_general(x, v, (((1,), (0,)), ((), ())), precision='foo') | lax.batch_matmul(v, v) | lax.broadcast_shapes((2,), (3,))
    package.devices('nonsense') | package.config.update('jax_nonsense', 1) | package.config.jax_nonsense
    package.typeof('a') | package.typeof([1]) | package.typeof(np.array(['a'])) | package.typeof(None)
"""  # noqa: E501
MISTAKES = [
    text.strip() for line in MISTAKES.strip().splitlines() for text in line.split(" | ")
]
