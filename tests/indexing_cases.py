"""Indices of all kinds, and what is done with them, for minijax and for JAX."""

import numpy as np

X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")
I = np.array([0, -1, 2, 2, 9, -9], "int32")  # noqa: E741  twice, negative, outside
J = np.array([[1], [0]], "int32")
K = np.array([0, 2, -1], "int8")
U = np.array([1, 3], "uint8")
S, T = np.int32(2), np.int32(-1)
ROWS = np.array([True, False, True, False])
MASK = np.random.default_rng(1).random((4, 5)) < 0.4
NONE = np.zeros((0,), "int32")
ALL, BACK = slice(None), slice(None, None, -1)

INDICES = [
    *[(I,), (I, I), (J, I), (I, ALL, K[:1]), (ALL, I), (ALL, I, U[:1])],
    *[(slice(None, None, 2), I), (BACK, I), (I, slice(None, None, -2))],
    *[(S,), (T,), (S, T), (S, T, S), (S, slice(1, 3)), (BACK, S), (None, S)],
    *[(S, None, T), (..., S), (..., S, None), (S, ...), (ROWS,), (MASK,)],
    *[(ROWS, I[:2]), (ALL, slice(1, None), K), (..., K), (0, I), (I, 0)],
    *[(I, ALL, 0), (0, ALL, K), (0, None, K), (K, ..., K), (K, ..., ALL, K)],
    *[(None, K), (K, None), (True,), (False,), (True, I), (ALL, True), (True, K)],
    *[(ALL, True, ALL, 0), (True, ALL, 0), (NONE,), (NONE, slice(None, None, 2))],
    *[([0, 1],), ([True, False, True, False], K[:2]), ([0, 1], ALL, [2, 0])],
    *[(J, ALL, U), (slice(2, 1), I), (slice(1, 3), I, slice(0, 2)), (...,), ()],
    *[(0,), (np.int64(1),), (7,), (-7,), (I, I, I, I), ("a",), (1.5,)],
    *[(np.ones(2),), (..., ...), (S, slice(None, None, 2)), (np.array(True), K)],
    (slice(None, None, 3), slice(None, None, 2), K),
]


def is_number(entry):
    """Whether an entry of an index is an array of integers."""
    return isinstance(entry, np.ndarray | np.int32) and entry.dtype != bool


def traced(m, x, index):
    """``x[index]`` in a program that gets the numbers of the index as arguments."""

    def f(x, *numbers):
        rest = iter(numbers)
        return x[tuple(next(rest) if is_number(e) else e for e in index)]

    return m.jit(f)(x, *filter(is_number, index))


def as_arrays(m, index):
    """An index with arrays of a package in place of NumPy's."""
    wanted = np.ndarray | np.int32
    return tuple(m.numpy.asarray(e) if isinstance(e, wanted) else e for e in index)


def slope(f, compiled=True):
    """The gradient of the sum of squares of a function of an array and an index."""

    def call(m, x, index):
        gradient = m.grad(lambda x: (f(m, x, index) ** 2).sum())
        return (m.jit(gradient) if compiled else gradient)(x)

    return call


USES = {
    "arrays": lambda m, x, i: x[as_arrays(m, i)],
    "numpy": lambda m, x, i: x[i],
    "traced": traced,
    "gradient": slope(lambda m, x, i: x[i]),
    "second derivative": lambda m, x, i: m.jvp(
        m.grad(lambda x: (x[i] ** 3).sum()), (x,), (x,)
    )[1],
    "fill": lambda m, x, i: x.at[i].get(mode="fill"),
    "no wrap": lambda m, x, i: x.at[i].get(
        mode="fill", wrap_negative_indices=False, fill_value=3.0
    ),
    "clip": lambda m, x, i: x.at[i].get(mode="clip", wrap_negative_indices=False),
    "set": lambda m, x, i: x.at[i].set(7.0),
    "add": lambda m, x, i: x.at[as_arrays(m, i)].add(m.numpy.arange(3.0)),
    "subtract": lambda m, x, i: x.at[i].subtract(m.numpy.arange(3.0)),
    "multiply": lambda m, x, i: x.at[i].mul(2.0),
    "divide": lambda m, x, i: x.at[i].divide(2.0),
    "power": lambda m, x, i: x.at[i].power(2.0),
    "min": lambda m, x, i: x.at[i].min(0.0),
    "max": lambda m, x, i: x.at[i].max(0.0, mode="clip"),
    "apply": lambda m, x, i: x.at[i].apply(lambda x: 2 * x + 1),
    "gradient of set": slope(lambda m, x, i: x.at[i].set(x[0, 0])),
    "gradient of min": slope(lambda m, x, i: x.at[i].min(x[0, 0]), False),
    "gradient of mul": slope(lambda m, x, i: x.at[i].mul(x[0, 0]), False),
}

# Dimension numbers of gathers in X, the shape of the indices, the sizes of a window.
WINDOWS = {
    "rows": (((1, 2), (0,), (0,)), (6, 1), (1, 5, 3)),
    "one column": (((0,), (0, 1), (0, 1)), (2,), (1, 1, 3)),
    "elements": (((), (0, 1, 2), (2, 0, 1)), (7, 3), (1, 1, 1)),
    "boxes": (((1, 2, 3), (), (1,)), (6, 1), (2, 3, 3)),
    "in front": (((0, 1), (1,), (1,)), (2, 3, 1), (2, 1, 3)),
    "shared": (((1,), (1,), (1,), (0,), (0,)), (4, 1), (1, 1, 3)),
    "shared, turned": (((1,), (2,), (2,), (0,), (1,)), (2, 4, 1), (1, 5, 1)),
    "no number": (((0, 1, 2), (), ()), (0,), (4, 5, 3)),
}
