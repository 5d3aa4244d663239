"""Calls of every differentiable primitive, for minijax and for JAX alike.

`CASES` maps a name to `(call, operands)`: `call(lax, *operands)` applies one function
of the namespace `lax`; the operands are NumPy arrays and scalars.
"""

import numpy as np

_random = np.random.default_rng(3)


def _between(low, high, shape=(2, 3)):
    return _random.uniform(low, high, shape)


def _complex(low, high, shape=(2, 3)):
    return _between(low, high, shape) + 1j * _between(low, high, shape)


def _method(name, *args, **kwargs):
    return lambda lax, *xs: getattr(lax, name)(*xs, *args, **kwargs)


CASES = {}

SMOOTH = (
    "neg abs exp exp2 log log1p expm1 sin cos tan asin acos atan sinh cosh tanh asinh "
    "atanh logistic sqrt rsqrt square"
).split()
for name in SMOOTH:
    CASES[name] = _method(name), [_between(0.2, 0.8)]
    CASES[f"{name} complex"] = _method(name), [_complex(0.2, 0.8)]
CASES["abs negative"] = _method("abs"), [_between(-1, -0.5)]
CASES["acosh"] = _method("acosh"), [_between(1.2, 1.8)]
for name in "floor ceil round sign cbrt erf erfc erf_inv".split():
    CASES[name] = _method(name), [_between(0.2, 0.8)]
CASES["reduce_precision"] = _method("reduce_precision", 11, 52), [_between(0, 1)]
for name in "real imag conj".split():
    CASES[name] = _method(name), [_complex(0, 1)]
for power in range(-3, 5):
    CASES[f"integer_pow {power}"] = _method("integer_pow", power), [_between(0.5, 1)]

for name in "add sub mul div rem pow max min atan2 complex".split():
    function = _method(name)
    CASES[name] = function, [_between(2.1, 2.9), _between(0.6, 0.9)]
    CASES[f"{name} of scalars"] = function, [np.array(2.5), np.array(0.7)]
    CASES[f"{name} scalar left"] = function, [np.array(2.5), _between(0.6, 0.9)]
    CASES[f"{name} scalar right"] = function, [_between(2.1, 2.9), np.array(0.7)]
    CASES[f"{name} row"] = function, [_between(2.1, 2.9, (1, 3)), _between(0.6, 0.9)]
for name in "add sub mul div pow".split():
    CASES[f"{name} complex"] = _method(name), [_complex(0.2, 1), _complex(1, 2)]

_which = np.array([[True, False, True]] * 2)
CASES["select_n"] = (
    lambda lax, x, y: lax.select_n(_which, x, y),
    [_between(0, 1), _between(0, 1)],
)
CASES["clamp"] = (
    _method("clamp"),
    [_between(0, 0.3), _between(0, 1), _between(0.6, 1)],
)
CASES["convert_element_type"] = (
    _method("convert_element_type", complex),
    [_between(0, 1)],
)

_matrix = _between(0, 1)
CASES["broadcast_in_dim"] = _method("broadcast_in_dim", (4, 3), (1,)), [_matrix[0]]
CASES["reshape"] = _method("reshape", (3, 2)), [_matrix]
CASES["transpose"] = _method("transpose", (1, 0)), [_matrix]
CASES["squeeze"] = _method("squeeze", (0,)), [_matrix[:1]]
CASES["slice"] = _method("slice", (0, 1), (2, 3), (1, 2)), [_matrix]
CASES["pad"] = _method("pad", [(1, -1, 1), (0, 2, 0)]), [_matrix, np.array(0.5)]
CASES["rev"] = _method("rev", (1,)), [_matrix]
CASES["concatenate"] = (
    lambda lax, *xs: lax.concatenate(xs, 1),
    [_matrix, _matrix[:, :1], 2 * _matrix],
)
CASES["dot_general"] = (
    _method("dot_general", (((2,), (1,)), ((0,), (0,)))),
    [_between(0, 1, (2, 3, 4)), _between(0, 1, (2, 4, 5))],
)
CASES["dot_general outer"] = (
    _method("dot_general", (((), ()), ((), ()))),
    [_between(0, 1, (3,)), _between(0, 1, (2,))],
)
for name in "reduce_sum reduce_prod reduce_max reduce_min".split():
    for axes in ((0,), (1,), (0, 1)):
        CASES[f"{name} {axes}"] = _method(name, axes), [_between(0.3, 1, (5, 4))]
CASES["reduce_prod of zeros"] = _method("reduce_prod", (0,)), [np.array([0.0, 2, 0])]
CASES["reduce_prod of nothing"] = _method("reduce_prod", (0,)), [np.zeros((0, 3))]
for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    for size in (1, 2, 3, 8):
        operand = [_between(0.3, 2, (2, size))]
        CASES[f"{name} {size}"] = _method(name, 1), operand
        CASES[f"{name} {size} reverse"] = _method(name, 1, reverse=True), operand
CASES["cumlogsumexp complex"] = (
    _method("cumlogsumexp", 0),
    [np.array([1 + 3j, 2 + 3j, -1 - 3j, 2.5 + 2j])],
)

CASES["sort"] = _method("sort"), [_between(-1, 1, (3, 4))]


def _convolved(lax, x, w):
    return lax.conv_general_dilated(x, w, (2,), [(2, 0)], rhs_dilation=(2,))


def _pooled(fold, init):
    def call(lax, x):
        return lax.reduce_window(x, init, getattr(lax, fold), (2, 3), (1, 2), "SAME")

    return call


def _placed(lax, source, x):
    how = {"select_prim": lax.ge_p, "padding": ((0, 0), (0, 0))}
    how |= {"window_dimensions": (2, 3), "window_strides": (2, 1)}
    return lax.select_and_scatter_add_p.bind(source, x, **how)


CASES["places of the largest"] = (
    _placed,
    [_between(-1, 1, (2, 3)), _between(1, 2, (4, 5))],
)
CASES["convolution"] = (
    _convolved,
    [_between(-1, 1, (1, 2, 7)), _between(1, 2, (3, 2, 3))],
)
CASES["largest of windows"] = _pooled("max", -np.inf), [_between(-1, 1, (4, 5))]
CASES["least of windows"] = _pooled("min", np.inf), [_between(-1, 1, (4, 5))]
CASES["sums of windows"] = _pooled("add", 0.0), [_between(-1, 1, (4, 5))]
CASES["products of windows"] = _pooled("mul", 1.0), [_between(1, 2, (4, 5))]
CASES["sort along the first axis"] = _method("sort", 0), [_between(-1, 1, (5, 2))]
CASES["sort complex"] = _method("sort"), [_complex(-1, 1)]
TIED = np.array([2, 1, 2, 1], np.int32)  # no number is near the tie of two others
CASES["sort by two keys"] = (
    lambda lax, *xs: lax.sort((TIED, *xs), num_keys=2)[2],
    [_between(0, 1, 4), _between(0, 1, 4)],
)
CASES["top_k"] = lambda lax, x: lax.top_k(x, 2)[0], [_between(-1, 1, (3, 4))]
CASES["approx_min_k"] = (
    lambda lax, x: lax.approx_min_k(x, 2)[0],
    [_between(-1, 1, (3, 4))],
)



def _square(dtype=float):
    """Return a matrix with a large diagonal, different in all places."""
    x = _between(-1, 1, (3, 3)).astype(dtype)
    x += 1j * _between(-1, 1, (3, 3)) if x.dtype.kind == "c" else 0
    return x + np.diag([2.0, 4.0, 7.0])


def _linalg(name, choose, **params):
    return lambda lax, *xs: choose(getattr(lax.linalg, name)(*xs, **params))


NO_VECTORS = {f"compute_{s}_eigenvectors": False for s in ("left", "right")}
NO_VECTORS["enable_eigvec_derivs"] = True
for suffix, dtype in (("", float), (" complex", complex)):
    CASES[f"cholesky{suffix}"] = _linalg("cholesky", lambda x: x), [_square(dtype)]
    CASES[f"lu{suffix}"] = _linalg("lu", lambda parts: parts[0]), [_square(dtype)]
    CASES[f"qr{suffix}"] = _linalg("qr", lambda qr: qr[0]), [_square(dtype)[:, :2]]
    CASES[f"qr r{suffix}"] = _linalg("qr", lambda qr: qr[1]), [_square(dtype)]
    CASES[f"eigh{suffix}"] = _linalg("eigh", lambda vw: vw[1]), [_square(dtype)]
    CASES[f"svd{suffix}"] = _linalg("svd", lambda s: s, compute_uv=False), [
        _square(dtype)[:2]
    ]
    for side, transpose in ((False, False), (True, True)):
        CASES[f"triangular_solve {side}{suffix}"] = (
            _linalg(
                "triangular_solve", lambda x: x, left_side=side, transpose_a=transpose,
                lower=side, conjugate_a=side, unit_diagonal=not transpose,
            ),
            [_square(dtype), _square(dtype)[:2].T if side else _square(dtype)[:2]],
        )  # fmt: skip
    CASES[f"qr pivoting{suffix}"] = (
        _linalg("qr", lambda qr: qr[0], full_matrices=False, pivoting=True),
        [_square(dtype)[:, :2]],
    )
    CASES[f"tridiagonal_solve{suffix}"] = (
        _linalg("tridiagonal_solve", lambda x: x, perturb_singular=False),
        [*_square(dtype)[[1, 0, 2]] + [[0], [6], [0]], _square(dtype)[:, :2]],
    )
CASES["eig"] = _linalg("eig", lambda w: w[0].real, **NO_VECTORS), [_square()]
CASES["eigh vectors"] = _linalg("eigh", lambda vw: vw[0]), [_square()]
CASES["svd vectors"] = (
    _linalg("svd", lambda usv: usv[0], full_matrices=False),
    [_square()[:, :2]],
)
SWAPS = np.array([2, 1, 2], np.int32)
CASES["lu_pivots_to_permutation"] = (
    lambda lax, x: lax.mul(
        x, lax.convert_element_type(
            lax.linalg.lu_pivots_to_permutation(SWAPS, 4), x.dtype
        )
    ),
    [_between(0, 1, 4)],
)  # fmt: skip
_NAMED = np.array([[2], [0], [2], [4]], np.int32)  # one place twice, one outside
_ROWS = (1,), (0,), (0,)


def _scatter(name, unique=False, mode="clip", places=_NAMED):
    def call(lax, x, updates):
        numbers = lax.ScatterDimensionNumbers(*_ROWS)
        how = {"unique_indices": unique, "mode": mode}
        return getattr(lax, name)(x, places, updates, numbers, **how)

    return call


def _gather(lax, x):
    numbers = lax.GatherDimensionNumbers(*_ROWS)
    return lax.gather(x, _NAMED, numbers, (1, 2), mode="fill", fill_value=0)


def _paired(lax, x):
    numbers = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    return lax.gather(x, _NAMED[:3, None], numbers, (1, 1), mode="clip")


CASES["gather"] = _gather, [_between(-1, 1, (3, 2))]
CASES["gather in pairs"] = _paired, [_between(-1, 1, (3, 2))]
for name in "add sub min max".split():
    CASES[f"scatter_{name}"] = (
        _scatter(f"scatter_{name}", mode="drop"),
        [_between(-1, 1, (3, 2)), _between(-0.9, 0.8, (4, 2))],
    )
for name in "scatter", "scatter_add", "scatter_mul":
    CASES[f"{name} once"] = (
        _scatter(name, unique=True, places=np.array([[1]])),
        [_between(0.2, 1, (3, 2)), _between(0.3, 0.8, (1, 2))],
    )
CASES["scatter twice"] = (
    _scatter("scatter"),
    [_between(-1, 1, (3, 2)), _between(-0.9, 0.8, (4, 2))],
)
CASES["dynamic_slice"] = (
    lambda lax, x: lax.dynamic_slice(x, (2, 0), (2, 1)),
    [_between(-1, 1, (3, 2))],
)
CASES["dynamic_update_slice"] = (
    lambda lax, x, update: lax.dynamic_update_slice(x, update, (2, 0)),
    [_between(-1, 1, (3, 2)), _between(-1, 1, (2, 1))],
)

# Called on these, but with a second derivative that is no primitive.
ONCE = {
    "lgamma": (_method("lgamma"), [_between(0.2, 3)]),
    "digamma": (_method("digamma"), [_between(0.2, 3)]),
}

# Where a derivative has a corner, JAX's choice counts; no finite difference knows it.
_tied = np.array([1.0, 2.0, 2.0, 1.0, 2.0])
TIES = {
    "sort": (_method("sort"), [_tied]),
    "top_k": (lambda lax, x: lax.top_k(x, 3)[0], [_tied]),
    "abs at 0": (_method("abs"), [np.array([0.0, -0.0, 1.0])]),
    "abs at 0 complex": (_method("abs"), [np.array([0j, 1j])]),
    "max": (_method("max"), [_tied, _tied[::-1].copy()]),
    "min": (_method("min"), [_tied, _tied[::-1].copy()]),
    "max scalar": (_method("max"), [_tied, np.array(2.0)]),
    "clamp": (_method("clamp"), [np.ones(5), _tied, 2 * np.ones(5)]),
    "reduce_max": (_method("reduce_max", (0,)), [_tied]),
    "reduce_min": (_method("reduce_min", (0,)), [_tied]),
    "reduce_max of a constant": (_method("reduce_max", (0, 1)), [np.ones((3, 2))]),
    "cummax": (_method("cummax", 0), [_tied]),
    "cummin": (_method("cummin", 0), [_tied]),
    "cummax reverse": (_method("cummax", 0, reverse=True), [np.ones(7)]),
    "cumlogsumexp": (_method("cumlogsumexp", 0), [_tied]),
    "pow": (_method("pow"), [np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 0.0])]),
    "pow scalar": (_method("pow"), [np.array([0.0, 2.0]), np.array(2.0)]),
    "sqrt at 0": (_method("sqrt"), [np.array([0.0])]),
    "sign": (_method("sign"), [np.array([0.0, 1.0])]),
    "rem": (_method("rem"), [np.array([-3.0, 4.0]), np.array([2.0, -3.0])]),
    "div by 0": (_method("div"), [np.array([1.0, 0.0]), np.array([0.0, 0.0])]),
}


def direction(x, seed=0):
    """Return a fixed tangent for the operand `x`, of its shape and dtype."""
    random = np.random.default_rng([seed, x.size])
    t = random.standard_normal(x.shape)
    if x.dtype.kind == "c":
        t = t + 1j * random.standard_normal(x.shape)
    return np.asarray(t, x.dtype)
