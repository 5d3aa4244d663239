"""Calls of `minijax.numpy` and syntax on arrays, as text: to be run on any such module.

The names of `NAMES` stand for arrays; `jnp` and `np` for the modules.
"""

import itertools

NAMES = {
    "b": "jnp.array([True, False, True])",
    "i8": "jnp.array([-3, 0, 100], 'int8')",
    "u8": "jnp.array([0, 3, 200], 'uint8')",
    "i": "jnp.array([-7, 0, 5])",
    "h": "jnp.array([-1.5, 0.0, 2.5], 'float16')",
    "x": "jnp.array([-2.5, 0.25, 0.5])",
    "odd": "jnp.array([np.nan, np.inf, -np.inf])",
    "c": "jnp.array([1 + 2j, 0.5, -1.5j])",
    "w": "jnp.array(2.0)",
    "wi": "jnp.array(-2)",
    "s": "jnp.float32(2)",
    "m": "jnp.arange(6.0).reshape(2, 3)",
    "t": "jnp.arange(24.0).reshape(2, 3, 4)",
    "wide": "np.array([1.5, -2.0, 0.0])",
    "none": "jnp.zeros((0, 3))",
}

OPERANDS = ["b", "i8", "u8", "i", "h", "x", "odd", "c", "w", "wi", "wide"]
OPERANDS += ["3", "0.3", "True", "1j"]
PAIRED = ["b", "i8", "u8", "i", "h", "x", "c", "w", "3", "0.3"]

UNARY = """
    positive negative absolute abs sign square exp exp2 expm1 log log1p sqrt cbrt sin
    cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh reciprocal log2
    log10 deg2rad rad2deg floor ceil trunc logical_not bitwise_not real imag conjugate
    iscomplex isreal isnan isinf isfinite round
""".split()
BINARY = """
    add subtract multiply divide maximum minimum arctan2 power floor_divide remainder
    equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift logaddexp
    hypot isclose array_equal divmod
""".split()
OPERATORS = "+ - * / // % ** & | ^ << >> == != < <= > >=".split()
REDUCTIONS = """
    sum prod mean var std max min any all argmax argmin cumsum cumprod count_nonzero ptp
    linalg.norm
""".split()

# Infinities and bools, of which XLA and NumPy have different opinions.
UNLIKE = {
    "jnp.round(b)", "jnp.round(True)",
    "jnp.arcsinh(c)", "jnp.power(u8, c)",
}  # fmt: skip


def generated():
    """Every ufunc on every kind of operand, every operator on every pair."""
    for name in UNARY + REDUCTIONS:
        yield from (f"jnp.{name}({a})" for a in OPERANDS)
    for a, b in itertools.combinations_with_replacement(PAIRED, 2):
        yield from (f"jnp.{name}({a}, {b})" for name in BINARY)
        yield f"jnp.where(b, {a}, {b})"
    for a, sign in itertools.product(PAIRED[:8], OPERATORS):
        yield from (f"{a} {sign} {b}" for b in ("x", "i", "3", "0.3"))


CREATION = """
jnp.array(1)
jnp.array(1.0, int)
jnp.array(w)
jnp.array([w, 2.0])
jnp.array([1, 2.5])
jnp.array([range(3), (1.0, 2, 3)])
jnp.array([True, 1])
jnp.array([[1, 2], [3, 4]], 'float16')
jnp.array([x, x])
jnp.array([[x[0], 1], [2, 3]])
jnp.array([np.int8(1), 2])
jnp.array([])
jnp.array([[]])
jnp.array([], int)
jnp.array(1, ndmin=2)
jnp.array(np.array([2**40]))
jnp.asarray(wide)
jnp.asarray([x, i])
jnp.zeros(3)
jnp.zeros((2, 0), int)
jnp.zeros(jnp.array([1, 2]))
jnp.ones((2, 3), 'int8')
jnp.empty(2)
jnp.full(3, 2)
jnp.full(3, w)
jnp.full((2, 3), x)
jnp.full(2, 1.7, int)
jnp.zeros_like(w)
jnp.ones_like(1)
jnp.full_like(i, 2.5)
jnp.full_like(w, 3)
jnp.zeros_like(m, dtype=int)
jnp.ones_like(m, shape=(2,))
jnp.arange(5)
jnp.arange(2.5)
jnp.arange(0, 1, 0.1)
jnp.arange(5, 1, -1)
jnp.arange(3, 0)
jnp.arange(1, 9, 3, 'int8')
jnp.arange(w)
jnp.linspace(0, 1, 5)
jnp.linspace(0, 1, 3, dtype=int)
jnp.linspace(0, 1, 4, endpoint=False)
jnp.linspace(x, 2, 3)
jnp.linspace(x, 2, 3, axis=1)
jnp.linspace(1j, 2, 3)
jnp.linspace(0, 1, 0)
jnp.linspace(0, 10, 1)
jnp.linspace(0, 1, 3, retstep=True)
jnp.linspace(0, 1, 1, endpoint=False, retstep=True)
jnp.eye(3)
jnp.eye(2, 3, 1, int)
jnp.eye(3, k=-1)
jnp.identity(2)
jnp.tri(2, 3, 1)
jnp.tril(m)
jnp.triu(t, -1)
jnp.tril(b[None])
jnp.diag(x)
jnp.diag(x, 1)
jnp.diag(x, -2)
jnp.diag(m)
jnp.diag(m, 1)
jnp.diag(m, 9)
jnp.diagonal(t, 1)
jnp.diagonal(t, -1, 2, 0)
jnp.trace(m)
jnp.trace(i8[None], 1)
jnp.diag_indices(3)
jnp.meshgrid(x, i)
jnp.meshgrid(x, i, x, indexing='ij')
jnp.meshgrid(x, i, sparse=True)
jnp.meshgrid()
jnp.copy(x)
jnp.astype(x, int)
jnp.float32(1)
jnp.float32([1, 2])
jnp.int8(100)
jnp.int32(2.7)
jnp.bool_(3)
jnp.complex64(1)
c.astype(bool)
jnp.array([1j, 0.0, np.nan]).astype('bool')
jnp.astype(1j, bool)
jnp.bool_(1j)
jnp.array(1j, dtype=bool)
jnp.array([1j, 0], dtype=bool)
jnp.array(np.array([1j, 0]), dtype=bool)
jnp.full((2,), 1j, dtype=bool)
jnp.where(jnp.array([1j, 0.0]), 1, 2)
jnp.any(jnp.array([1j, 0.0]))
jnp.all(jnp.array([1 + 1j, 1j]))
jnp.logical_not(jnp.array([1j, 0.0]))
jnp.count_nonzero(jnp.array([1j, 0.0]))
bool(jnp.array(1j))
jnp.cumsum(3, 0)
jnp.cumprod(wi, -1)
jnp.int32(x)
""".strip().splitlines()

SHAPES = """
jnp.reshape(m, (3, 2))
jnp.reshape(m, -1)
jnp.reshape(m, (3, -1), order='F')
jnp.reshape(none, (0, 5))
jnp.reshape(1, (1,))
jnp.ravel(m)
jnp.ravel(m, order='F')
jnp.transpose(t)
jnp.transpose(t, (1, -1, 0))
jnp.matrix_transpose(t)
jnp.moveaxis(t, 0, -1)
jnp.moveaxis(t, (0, 1), (1, 2))
jnp.swapaxes(t, 0, -1)
jnp.squeeze(m[None, :, :1])
jnp.squeeze(m[None], 0)
jnp.expand_dims(m, 1)
jnp.expand_dims(m, (0, -1))
jnp.broadcast_to(s, (2, 2))
jnp.broadcast_to(x, (2, 3))
jnp.broadcast_arrays(x, m, 1)
jnp.broadcast_shapes((2, 1), (3,))
jnp.atleast_1d(s)
jnp.atleast_2d(x)
jnp.atleast_2d(x, m)
jnp.atleast_3d(x)
jnp.atleast_3d(m)
jnp.concatenate([x, i])
jnp.concatenate([m, m], axis=-1)
jnp.concatenate([m, x], axis=None)
jnp.concatenate([i8, i], dtype='float16')
jnp.concatenate(m)
jnp.stack([x, i], axis=1)
jnp.stack([1, 2])
jnp.stack([m, m], axis=-1)
jnp.vstack([x, i])
jnp.vstack([1, 2])
jnp.hstack([x, i])
jnp.hstack([m, m])
jnp.append(x, 1)
jnp.append(m, m, axis=0)
jnp.split(x, 3)
jnp.split(m, [1], axis=1)
jnp.array_split(x, 2)
jnp.array_split(m, 2, axis=1)
jnp.tile(x, 2)
jnp.tile(m, (2, 2))
jnp.tile(x, (2, 1, 2))
jnp.tile(1, 3)
jnp.repeat(m, 2)
jnp.repeat(m, 2, axis=1)
jnp.repeat(x, np.array([1, 0, 2]))
jnp.repeat(x, np.array([1, 2, 3]), total_repeat_length=4)
jnp.repeat(x, np.array([1, 0, 1]), total_repeat_length=5)
jnp.pad(x, 1)
jnp.pad(x, 2, mode="edge")
jnp.pad(m, ((1, 0), (0, 2)), mode="reflect")
jnp.pad(m, (4, 5), mode="symmetric")
jnp.pad(m, (4, 5), mode="wrap")
jnp.pad(i, (0, 3), mode="reflect")
jnp.pad(m, ((1, 0), (0, 2)))
jnp.pad(m, (1, 2), constant_values=(3, 4))
jnp.pad(i, 1, constant_values=1.5)
jnp.pad(m, ((1, 1),), constant_values=w)
jnp.pad(m, (1, 2), "linear_ramp", end_values=(3, -1))
jnp.pad(i, 3, "linear_ramp")
jnp.pad(m, ((1, 1), (0, 3)), "mean", stat_length=((1, 2), (2, 1)))
jnp.pad(i, 2, "mean")
jnp.pad(m, 2, "median")
jnp.pad(i, 2, "median", stat_length=2)
jnp.pad(m, 1, "maximum")
jnp.pad(m, 1, "minimum", stat_length=1)
jnp.pad(m, 2, "empty")
jnp.pad(x, (7, 8), "reflect", reflect_type="odd")
jnp.pad(m, (3, 1), "symmetric", reflect_type="odd")
jnp.pad(m[:1], 2, "reflect", reflect_type="odd")
jnp.pad(m, 1, lambda row, width, axis, options: row + options["by"] + axis, by=2)
jnp.flip(m)
jnp.flip(m, 0)
jnp.roll(x, 1)
jnp.roll(m, -4)
jnp.roll(m, (1, 2), (0, 1))
jnp.roll(m, 1, axis=(0, 1))
jnp.roll(x[:0], 1)
""".strip().splitlines()

FOLDING = """
jnp.sum(m, axis=1)
jnp.sum(m, axis=(0, -1), keepdims=True)
jnp.sum(u8)
jnp.sum(i8, dtype='int8')
jnp.sum(u8, promote_integers=False)
jnp.sum(m, where=m > 2)
jnp.sum(m, axis=0, where=b, initial=10)
jnp.sum(none, axis=0)
jnp.prod(m + 1, axis=0)
jnp.mean(m, axis=0, keepdims=True)
jnp.mean(m, where=m > 2)
jnp.mean(i8, dtype='float16')
jnp.var(m, axis=1)
jnp.var(m, ddof=1)
jnp.var(m, correction=1)
jnp.var(x, ddof=3)
jnp.var(m, where=m > 2, keepdims=True)
jnp.var(m, mean=jnp.zeros((1, 1)))
jnp.std(m, axis=0, ddof=1)
jnp.max(m, axis=1, initial=2)
jnp.max(m, axis=0, where=b, initial=-1)
jnp.min(i8, where=b, initial=50)
jnp.max(none, axis=0, initial=1)
jnp.any(m > 3, axis=0)
jnp.all(m, axis=1, keepdims=True)
jnp.any(x, where=b)
jnp.all(x, where=i > 3)
jnp.argmax(m, axis=1)
jnp.argmin(m, keepdims=True)
jnp.argmax(odd)
jnp.cumsum(m, axis=1)
jnp.cumsum(m)
jnp.cumprod(x, dtype='float16')
jnp.count_nonzero(m, axis=0)
jnp.ptp(m, axis=1, keepdims=True)
jnp.linalg.norm(m)
jnp.linalg.norm(t)
jnp.linalg.norm(m, axis=1)
jnp.linalg.norm(m, 1)
jnp.linalg.norm(m, -np.inf)
jnp.linalg.norm(m, 2)
jnp.linalg.norm(m, 'nuc', keepdims=True)
jnp.linalg.norm(t, 'fro', axis=(0, 2), keepdims=True)
jnp.linalg.norm(m, np.inf, keepdims=True)
jnp.linalg.norm(x, 3)
jnp.linalg.norm(x, 0)
jnp.linalg.norm(x, -np.inf)
jnp.linalg.norm(c, 1)
""".strip().splitlines()

PRODUCTS = """
jnp.dot(2, 3)
jnp.dot(w, x)
jnp.dot(x, x)
jnp.dot(i, x)
jnp.dot(b, b)
jnp.dot(m, x)
jnp.dot(t, jnp.ones((4, 2)))
jnp.dot(m, t[:, :, :2])
jnp.matmul(m, x)
jnp.matmul(x, m.T)
jnp.matmul(m, m.T)
jnp.matmul(t, jnp.ones((4, 2)))
jnp.matmul(t, jnp.ones((2, 4, 5)))
jnp.matmul(x, t)
jnp.matmul(t, jnp.ones(4))
jnp.matmul(jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3, 2)))
jnp.matmul(jnp.ones((1, 2, 3)), jnp.ones((1, 3, 2)))
jnp.vdot(c, x)
jnp.vdot(m, m)
jnp.inner(m, m)
jnp.inner(x, 2)
jnp.outer(m, x)
jnp.outer(1, 2)
jnp.tensordot(t, t, axes=((0, 1), (0, 1)))
jnp.tensordot(m, m.T, axes=1)
jnp.tensordot(m, x, axes=0)
jnp.dot(i8, i8, preferred_element_type='int32')
""".strip().splitlines()

CHOICE = """
jnp.where(True, 1, 2.0)
jnp.where(b, x, i)
jnp.where(b[:, None], x, 1)
jnp.where(i, 1, 2)
jnp.where(True, x, 1)
jnp.clip(x, 0, 1)
jnp.clip(x, None, s)
jnp.clip(i, 0.5, None)
jnp.clip(5, 0, 1)
jnp.clip(x)
jnp.isclose(x, x + 1e-7)
jnp.isclose(odd, odd, equal_nan=True)
jnp.isclose(c, c)
jnp.allclose(x, i)
jnp.array_equal(x, m)
jnp.array_equal([1], [1])
jnp.array_equal(odd, odd, equal_nan=True)
jnp.array_equiv(x, m)
jnp.array_equiv(jnp.ones(3), jnp.ones((2, 3)))
jnp.power(x, 3)
jnp.power(2, i)
jnp.power(i, 2)
x ** -1
jnp.power(np.float16(3), jnp.array(2))
jnp.power(np.int8(3), jnp.array(2))
jnp.power(np.int8(3), jnp.array([2]))
jnp.power(np.float16(3), jnp.array(True))
x ** jnp.uint8(2)
x ** i
2.0 ** i
i ** 2.0
jnp.fmod(i, 3)
jnp.fmod(x, 2)
jnp.round(x, 1)
jnp.round(x * 100, -1)
jnp.round(c, 1)
jnp.round(i, 2)
jnp.float32(3.7) // 0
x // 0.0
i // 0
i % 0
i8 + 300
u8 - 300
h + 1e10
""".strip().splitlines()

SYNTAX = """
x[0]
x[-1]
x[5]
x[-9]
x[np.int32(1)]
x[jnp.int32(1)]
x[::-1]
x[::-2]
x[2:0:-1]
x[10::-1]
x[:-10:-1]
x[5:]
x[3:1]
x[wi:]
x[()]
x[...]
x[None]
x[..., None]
x[None, 0]
m[0][1]
m[:, 5]
m[1, ..., 2]
t[0, ::2]
t[..., 1]
t[1:, None, 2, ::-1]
t[:, -1, None]
t[::2, ::-2]
t[7, :, 1]
t[None, :, None, 0]
none[0:1]
len(m)
[*m]
list(reversed(x))
0.25 in x
99 in x
bool(s)
bool(m[:1, :1])
float(s)
int(s)
complex(s)
range(5)[jnp.array(2)]
round(x)
round(x, 1)
abs(x)
divmod(x, 2)
divmod(5, x)
+b
-x
~b
1 - x
2 / x
3 // x
5 % x
2 ** x
1 << abs(i)
True & b
np.ones(3) + x
np.float32(1) - x
np.ones(3) @ x
x @ x
m @ x
x == None
x != 'a'
x.__add__('a')
f'{s:.2f}'
x.item(1)
m.item(1, 2)
s.item()
m.tolist()
s.tolist()
m.tobytes()
m.reshape(3, 2)
m.reshape((3, 2))
m.reshape(-1)
m.reshape(3, -1, order='F')
m.transpose()
m.transpose(1, 0)
m.transpose((1, 0))
m.transpose(None)
m.T
t.mT
m.astype('int8')
x.astype(None)
x.astype(bool)
x.view('int32')
x.view('uint8')
jnp.array([1, 2, 3, 4], 'uint8').view('int16')
x.view()
m.flatten()
m.ravel('F')
x.nbytes
h.itemsize
m.diagonal()
m.trace()
x.clip(0, 1)
x.clip(max=0.3)
x.round(1)
c.real
x.imag
c.conj()
m.sum(0)
m.mean(axis=1, keepdims=True)
m.argmax(1)
m.repeat(2)
m.swapaxes(0, 1)
m[None].squeeze()
m.copy()
m.dot(x)
m.ptp()
x.any()
x.cumsum()
""".strip().splitlines()

QUESTIONS = """
jnp.issubdtype(jnp.float32, jnp.floating)
jnp.issubdtype('bfloat16', jnp.floating)
jnp.issubdtype(int, jnp.integer)
jnp.issubdtype(x.dtype, jnp.float32)
jnp.finfo(jnp.float32).eps
jnp.finfo(float).max
jnp.finfo(x).max
jnp.iinfo('int8').max
jnp.iinfo(int).max
jnp.result_type(1, x)
jnp.result_type(1.0, i)
jnp.result_type('int8', x)
jnp.result_type(float)
jnp.result_type(int, float)
jnp.promote_types('int8', 'uint8')
jnp.shape(m)
jnp.shape(1)
jnp.ndim(m)
jnp.size(m)
jnp.size(m, 1)
jnp.isscalar(1)
jnp.isscalar(w)
jnp.isscalar(x)
jnp.iscomplexobj(c)
jnp.iscomplexobj(1j)
jnp.isrealobj(x)
np.dtype(jnp.float32)
jnp.float32 == np.dtype('float32')
jnp.pi
jnp.newaxis
""".strip().splitlines()

# The class of the error, and words that its message must hold.
BAD = {
    "jnp.sin('a')": (TypeError, "sin requires", "position 0"),
    "jnp.sin([1.0, 2.0])": (TypeError, "sin requires", "list"),
    "jnp.add(x, None)": (TypeError, "add requires", "position 1"),
    "jnp.add(x)": (TypeError,),
    "x + [1, 2, 3]": (TypeError, "+", "list"),
    "x == [1, 2, 3]": (TypeError, "==", "jnp.array"),
    "jnp.power(np.int8(3), jnp.array(-2))": (TypeError, "negative power"),
    "x + None": (TypeError, "+"),
    "x < 'a'": (TypeError, "<"),
    "'a' + x": (TypeError,),
    "x + m.T": (ValueError, "(3,)", "(3, 2)"),
    "x + jnp.ones(4)": (TypeError, "add", "(3,)", "(4,)"),
    "b - b": (TypeError, "sub", "bool"),
    "-b": (TypeError, "neg", "bool"),
    "~x": (TypeError, "float32"),
    "x << 1": (TypeError, "float32"),
    "i ** -1": (TypeError, "negative powers"),
    "c // 2": (TypeError, "complex"),
    "jnp.hypot(c, 1)": (ValueError, "abs"),
    "jnp.clip(c, 0, 1)": (ValueError, "complex"),
    "jnp.floor(c)": (TypeError, "complex64"),
    "jnp.cumsum(3, 1)": (ValueError, "axis 1"),
    "i + 2**40": (OverflowError, "int32"),
    "jnp.array([1, 2**40])": (OverflowError, "int32"),
    "jnp.array(300, dtype='uint8')": (OverflowError, "uint8"),
    "jnp.array(None)": (ValueError, "None"),
    "jnp.array('a')": (TypeError,),
    "jnp.array({1: 2})": (TypeError,),
    "jnp.array([[1, 2], [3]])": (ValueError, "inhomogeneous"),
    "jnp.array([x, 1])": (TypeError, "(1, 3)"),
    "jnp.zeros(1.5)": (TypeError, "integer", "1.5"),
    "jnp.zeros((2, 'a'))": (TypeError, "integer", "'a'"),
    "jnp.zeros(-1)": (TypeError, "-1"),
    "jnp.zeros(3, str)": (TypeError, "str"),
    "jnp.full((2,), x)": (ValueError, "float32[3]", "float32[2]"),
    "jnp.arange(x)": (ValueError, "scalars"),
    "jnp.arange(1j)": (ValueError, "real"),
    "jnp.arange(1, 2, 0)": (ZeroDivisionError,),
    "jnp.linspace(0, 1, -1)": (ValueError, "-1"),
    "jnp.eye(2.5)": (TypeError, "2.5"),
    "jnp.tril(x)": (ValueError, "2D"),
    "jnp.diag(t)": (ValueError, "1d or 2d"),
    "jnp.diagonal(x)": (ValueError, "two dimensions"),
    "jnp.meshgrid(m)": (ValueError, "1D", "(2, 3)"),
    "jnp.reshape(m, 4)": (TypeError, "(2, 3)", "size 6", "size 4"),
    "jnp.reshape(m, (-1, -1))": (TypeError, "-1"),
    "jnp.reshape(m, (-1, 4))": (TypeError, "4", "6"),
    "jnp.transpose(m, (0, 0))": (TypeError, "(0, 0)", "(2, 3)"),
    "jnp.moveaxis(t, 0, 5)": (ValueError, "axis 5"),
    "jnp.squeeze(m, 0)": (ValueError, "(2, 3)"),
    "jnp.squeeze(m[None], (0, 0))": (ValueError, "(0, 0)"),
    "jnp.expand_dims(m, 5)": (ValueError, "axis 5"),
    "jnp.expand_dims(m, (0, 0))": (ValueError, "(0, 0)"),
    "jnp.broadcast_to(m, (3,))": (ValueError, "fewer dimensions"),
    "jnp.broadcast_to(x, (2,))": (ValueError, "float32[3]", "float32[2]"),
    "jnp.broadcast_shapes((2,), (3,))": (ValueError, "(2,)", "(3,)"),
    "x.mT": (ValueError, "two-dimensional"),
    "jnp.concatenate([])": (ValueError, "at least one"),
    "jnp.concatenate([1, 2])": (ValueError, "Zero-dimensional"),
    "jnp.concatenate([x, m])": (TypeError, "(3,)", "(2, 3)"),
    "jnp.concatenate([x, x], axis=1)": (ValueError, "axis 1"),
    "jnp.concatenate([m, m.T])": (TypeError, "(2, 3)", "(3, 2)"),
    "jnp.stack([x, m[0, :2]])": (ValueError, "(3,)", "(2,)"),
    "jnp.stack([])": (ValueError, "at least one"),
    "jnp.split(x, 2)": (ValueError, "rest is 1"),
    "jnp.split(x, [2, 1])": (ValueError, "increase"),
    "jnp.repeat(x, [1, 2])": (TypeError, "repeat"),
    "jnp.pad(m, -1)": (ValueError, "negative"),
    "jnp.pad(m, (1, 2, 3))": (ValueError, "(3,)"),
    "jnp.pad(m, 1, mode='foo')": (NotImplementedError, "foo"),
    "jnp.flip(x, 1)": (ValueError, "axis 1"),
    "jnp.sum([1, 2])": (TypeError, "sum requires"),
    "jnp.sum(x, axis=1)": (ValueError, "axis 1"),
    "jnp.sum(x, axis=(0, 0))": (ValueError, "(0, 0)"),
    "jnp.sum(x, axis=1.5)": (TypeError,),
    "jnp.sum(x, out=x)": (NotImplementedError, "out"),
    "jnp.max(none, axis=0)": (ValueError, "no identity"),
    "jnp.max(x, where=b)": (ValueError, "initial"),
    "jnp.max(x, where=[True])": (TypeError, "requires ndarray"),
    "jnp.sum(x, initial=[1, 2])": (TypeError, "requires ndarray"),
    "jnp.argmax(none[:, 0])": (ValueError, "empty"),
    "jnp.matmul(x, 2)": (ValueError, "operand 1"),
    "2 @ x": (ValueError, "operand 0"),
    "jnp.matmul(t, jnp.ones((3, 4, 5)))": (ValueError, "float32[2,3,4]"),
    "m @ m": (TypeError, "(3,)", "(2,)"),
    "jnp.tensordot(m, m, axes=3)": (TypeError, "axes 3"),
    "jnp.linalg.norm(t, 1)": (ValueError, "axis=None"),
    "jnp.linalg.norm(m, 3)": (ValueError, "3"),
    "jnp.linalg.norm(x, 'fro')": (ValueError, "fro"),
    "jnp.finfo(int)": (ValueError,),
    "jnp.iinfo(x)": (ValueError,),
    "bool(x)": (ValueError, "ambiguous"),
    "bool(x[:0])": (ValueError, "ambiguous"),
    "float(x)": (TypeError, "arr.ndim=1"),
    "int(c[0])": (TypeError,),
    "range(3)[w]": (TypeError, "integer"),
    "hash(x)": (TypeError, "unhashable"),
    "len(s)": (TypeError, "unsized"),
    "list(s)": (TypeError, "0-d"),
    "x.item()": (ValueError, "size 1"),
    "x[0, 0]": (IndexError, "1-dimensional", "2"),
    "x[..., ...]": (IndexError, "ellipsis"),
    "x[0.5]": (TypeError, "float"),
    "x['a']": (TypeError, "'a'"),
    "x[[0]]": (TypeError, "[0]", "jnp.array"),
    "x[x]": (TypeError, "float32"),
    "x[object()]": (IndexError, "integers, slices"),
    "x[1.0:]": (TypeError,),
    "x[::0]": (ValueError, "zero"),
    "none[0]": (IndexError, "size 0"),
    "x.__setitem__(0, 1)": (TypeError, "immutable", ".at["),
}


def calls():
    """All calls that are written out above."""
    return [*CREATION, *SHAPES, *FOLDING, *PRODUCTS, *CHOICE, *SYNTAX, *QUESTIONS]


def environment(jnp):
    """The names for a module like `jax.numpy`, for `eval`."""
    import numpy as np

    names = {"jnp": jnp, "np": np}
    for name, text in NAMES.items():
        names[name] = eval(text, names)
    return names
