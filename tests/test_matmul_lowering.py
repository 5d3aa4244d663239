"""Matrix products as steps: which are kernels, and that all are right."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax.kernels.lowering import Evaluate, Launch, lower
from minijax.matmul.lowering import Matmul
from tests.kernel_cases import alike
from tests.processors import runnable_kinds

KINDS = [
    "bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def steps(f, *args):
    """The steps of a function."""
    return lower(make_jaxpr(f)(*args)).steps


def random(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    numbers = 3 * rng.normal(size=shape)
    if dtype.startswith("complex"):
        numbers = numbers + 1j * rng.normal(size=shape)
    with np.errstate(invalid="ignore"):
        return jnp.asarray(numbers.astype(jnp.dtype(dtype)))


def names(f, *args):
    """What the steps of a function are called."""
    return [
        "product" if isinstance(step, Matmul) else step.kernel.name
        for step in steps(f, *args)
        if not isinstance(step, Evaluate)
    ]


@pytest.mark.parametrize(
    "shapes, found",
    [
        (((20, 30), (30, 40)), ["product"]),
        (((8, 8), (8, 8)), ["dot_general"]),
        (((20, 30), (30,)), ["dot_general"]),
        (((30,), (30, 20)), ["dot_general"]),
        (((200, 300), (300, 2)), ["copy", "dot_general"]),
        (((16, 16), (16, 16)), ["dot_general"]),
        (((200, 1), (1, 100)), ["dot_general"]),
        (((200, 0), (0, 100)), ["dot_general"]),
        (((0, 200), (200, 100)), ["dot_general"]),
        (((5, 20, 30), (5, 30, 40)), ["product"]),
        (((0, 20, 30), (0, 30, 40)), ["dot_general"]),
    ],
)
def test_what_it_becomes(shapes, found):
    x, y = map(random, shapes)
    assert names(jnp.matmul, x, y) == found
    for backend in ("kernels", "llvm"):
        ours = jit(jnp.matmul, backend=backend)(x, y)
        assert alike(ours, np.matmul(np.asarray(x), np.asarray(y)))


@pytest.mark.parametrize(
    "m, k, n, dtype, found",
    [
        (64, 64, 16, "float32", "dot_general"),  # 4096 numbers
        (65, 63, 16, "float32", "product"),  # one number less
        (64, 64, 17, "float32", "product"),
        (64, 64, 16, "bfloat16", "product"),
        (64, 64, 16, "int32", "product"),
        (1024, 64, 17, "float32", "dot_general"),  # 65536 numbers
        (1024, 64, 16, "int32", "dot_general"),
        (16, 256, 256, "float32", "dot_general"),
        (16, 255, 257, "float32", "product"),
        (17, 256, 256, "float32", "product"),
    ],
)
def test_thin_products_of_enough_numbers_are_kernels(m, k, n, dtype, found):
    x, y = random((m, k), dtype), random((k, n), dtype, 1)
    assert found in names(jnp.matmul, x, y)
    for backend in ("llvm", "cpu"):
        assert alike(jit(jnp.matmul, backend=backend)(x, y), jnp.matmul(x, y))


@pytest.mark.parametrize("kind", runnable_kinds())
@pytest.mark.parametrize("n", [3, 10, 15, 16])
@pytest.mark.parametrize("m, k", [(64, 64), (129, 32), (33, 127), (41, 129), (7, 600)])
def test_narrow_kernels(m, k, n, kind):
    """Around lanes, rows side by side and strips; with what fuses behind them."""
    x, y = random((m, k)), random((k, n), seed=1)

    def f(x, y):
        return jnp.tanh(x @ y / k) + x[:, :1]

    with minijax.config.override("minijax_cpu", kind):
        assert alike(jit(lambda x, y: f(x, y), backend="cpu")(x, y), f(x, y))


def test_transposes_are_strides():
    x, y = random((30, 20)), random((40, 30))
    [step] = steps(lambda x, y: x.T @ y.T, x, y)
    assert step.lhs.strides == (1, 20) and step.rhs.strides == (1, 30)
    assert step.sizes == (1, 20, 40, 30)
    assert str(step) == "m2:f32[20,40] = m0:f32[20,30] @ m1:f32[30,40]"


def test_outer_product_is_a_multiplication():
    [step] = steps(lambda x, y: jnp.outer(x, y), random((200,)), random((300,)))
    assert [node.op for node in step.kernel.nodes] == ["load", "load", "mul"]


NUMBERS = [
    (((8, 9, 10), (10, 9, 7)), (((2, 1), (0, 1)), ((), ()))),
    (((8, 9, 10), (10, 8, 9)), (((2, 1), (0, 2)), ((), ()))),
    (((8, 29, 10), (29, 30, 8)), (((1,), (0,)), ((0,), (2,)))),
    (((3, 19, 4, 20), (3, 11, 4, 20)), (((3,), (3,)), ((0, 2), (0, 2)))),
    (((3, 19, 4, 20), (4, 20, 3, 11)), (((3,), (1,)), ((2, 0), (0, 2)))),
    (((13, 4, 5, 6), (6, 5, 4, 23)), (((1, 2), (2, 1)), ((3,), (0,)))),
    (((3, 4, 5, 6), (6, 5, 4, 3)), (((1, 2), (2, 1)), ((3,), (0,)))),
    (((30, 20), (20, 30)), (((), ()), ((0,), (1,)))),
]


@pytest.mark.parametrize("shapes, numbers", NUMBERS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_any_dimension_numbers(shapes, numbers, dtype):
    x, y = (random(shape, dtype, seed) for seed, shape in enumerate(shapes))

    def f(x, y):
        return lax.dot_general(x, y, numbers)

    assert not any(isinstance(step, Evaluate) for step in steps(f, x, y))
    assert alike(jit(f, backend="llvm")(x, y), f(x, y))


@pytest.mark.parametrize("shapes", [((4, 5), (5, 6)), ((19, 20), (20, 21))])
@pytest.mark.parametrize("dtype", KINDS)
def test_dtypes(dtype, shapes):
    x, y = (random(shape, dtype, seed) for seed, shape in enumerate(shapes))
    for backend in ("kernels", "llvm"):
        assert alike(jit(jnp.matmul, backend=backend)(x, y), jnp.matmul(x, y))


@pytest.mark.parametrize("shapes", [((4, 5), (5, 6)), ((19, 20), (20, 21))])
@pytest.mark.parametrize(
    "kinds",
    [
        ("int8", "int8", "int32"),
        ("float16", "float16", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float32", "float32", "bfloat16"),
        ("float32", "complex64", None),
        ("float32", "float32", "float32"),
    ],
)
def test_preferred_element_type(kinds, shapes):
    *kinds, preferred = kinds
    x, y = (random(shape, kind) for shape, kind in zip(shapes, kinds, strict=True))

    def f(x, y):
        numbers = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, y, numbers, preferred_element_type=preferred)

    assert not any(isinstance(step, Evaluate) for step in steps(f, x, y))
    assert alike(jit(f, backend="llvm")(x, y), f(x, y))


SHORT = [
    ("int8", "int8", "int32"), ("int8", "int8", None), ("uint8", "uint8", "int32"),
    ("uint8", "uint8", None), ("uint8", "uint8", "uint32"), ("int16", "int16", "int32"),
    ("int16", "int16", None), ("uint16", "uint16", None),
]  # fmt: skip
NOT_SHORT = [("uint16", "uint16", "uint32"), ("int8", "int32", "int32")]


def extremes(shape, dtype, seed=0):
    """Numbers of which many are the least, or the greatest, of a dtype."""
    ends = np.iinfo(dtype)
    choice = np.array([ends.min, ends.max, ends.max - 1, 1, 0, 7], dtype)
    return jnp.asarray(np.random.default_rng(seed).choice(choice, shape))


@pytest.mark.parametrize("kinds", SHORT + NOT_SHORT)
def test_short_integers_wrap(kinds):
    """Products of pairs: sizes around lanes, odd sums, all limits; exact, then cut."""
    *kinds, preferred = kinds

    def f(x, y):
        return jnp.matmul(x, y, preferred_element_type=preferred)

    for m, k, n in ((20, 33, 17), (17, 64, 31), (40, 9, 33)):
        x, y = extremes((m, k), kinds[0]), extremes((k, n), kinds[1], 1)
        [step] = [s for s in steps(f, x, y) if isinstance(s, Matmul)]
        assert step.pairs == ((*kinds, preferred) in SHORT)
        exact = np.asarray(x).astype(np.int64) @ np.asarray(y).astype(np.int64)
        for backend in ("kernels", "llvm"):
            ours = jit(f, backend=backend)(x, y)
            assert (np.asarray(ours) == exact.astype(ours.dtype)).all()


def test_short_integers_in_any_layout():
    x, y = extremes((3, 21, 4, 18), "int8"), extremes((3, 4, 18, 22), "int8", 1)
    layouts = [
        lambda x, y: (x, y),
        lambda x, y: (x[:, ::-1, :, ::2], y[:, :, ::2]),
        lambda x, y: (x[..., ::-1], y[:, :, ::-1, ::-1]),
        lambda x, y: (x[:, 1:, 1:3, 1:], y[:, 1:3, :17, 3:]),
        lambda x, y: (jnp.full(x.shape, 3, "int8"), y),
    ]
    for numbers in ((((2, 3), (1, 2)), ((0,), (0,))), (((3,), (2,)), ((0, 2), (0, 1)))):
        for layout in layouts:

            def f(x, y, layout=layout, numbers=numbers):
                pair = layout(x, y)
                return lax.dot_general(*pair, numbers, preferred_element_type="int32")

            for backend in ("kernels", "llvm", None):
                assert alike(jit(f, backend=backend)(x, y), f(x, y))


def test_operands_that_are_one_number():
    x = random((30, 40))

    def f(x):
        return jnp.full((20, 30), 2.0) @ x + jnp.ones((20, 30)) @ x[:, :1]

    assert [type(step) for step in steps(f, x)].count(Launch) >= 2
    assert alike(jit(f, backend="llvm")(x), f(x))


def test_derivatives_and_batches():
    w, x = random((20, 30)), random((5, 10, 20))  # the gradient: 20 by 30 by 10

    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    wanted = grad(loss)(w, x[0])
    assert alike(jit(grad(loss), backend="llvm")(w, x[0]), wanted)
    batch = vmap(grad(loss), (None, 0))
    assert "product" in names(batch, w, x)
    assert alike(jit(batch, backend="llvm")(w, x), batch(w, x))
