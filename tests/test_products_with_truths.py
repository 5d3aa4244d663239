"""A float times bools is the float or 0: eager, compiled, transformed."""

from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax

BACKENDS = "interpreter python kernels llvm planned cpu".split()
BACKENDS = [name for name in BACKENDS if name in minijax.jitting.compilation.backends]
INFINITE = [np.inf, -np.inf, np.nan, 1.0]
TRUTHS = [False, False, False, True]
FLOATS = ["float16", "bfloat16", "float32", "complex64"]


def arrays(dtype):
    return jnp.array(TRUTHS), jnp.array(INFINITE).astype(dtype)


def chosen(dtype):
    return np.array([0, 0, 0, 1], np.dtype(jnp.dtype(dtype)))


PROGRAMS = {
    "product": lambda m, x: m * x,
    "reflected": lambda m, x: x * m,
    "of NumPy": lambda m, x: np.array(TRUTHS) * x,
    "multiply": jnp.multiply,
    "compared": lambda m, x: (m.astype(int) == 1) * x,
    "in a batch": minijax.vmap(lambda m, x: m * x),
    "in a scan": lambda m, x: lax.map(lambda row: row[0] * row[1], (m, x)),
    "in a branch": lambda m, x: lax.cond(True, lambda: m * x, lambda: x),
    "in a call": lambda m, x: minijax.jit(lambda x: m * x)(x),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_eager_and_compiled(name, dtype):
    f, (m, x) = PROGRAMS[name], arrays(dtype)
    for how in (f, minijax.jit(f)):
        np.testing.assert_array_equal(how(m, x), chosen(dtype))
        assert how(m, x).dtype == x.dtype


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend(backend):
    m, x = arrays("float32")
    f = minijax.jit(PROGRAMS["product"], backend=backend)
    np.testing.assert_array_equal(f(m, x), chosen("float32"))


VIEWED = {
    "conversion": lambda m, x: m.astype("float32") * x,
    "column": lambda m, x: (m[:, None] * x)[:, 1],
    "row": lambda m, x: (m * x[:, None])[1],
    "matrix": lambda m, x: m.reshape(2, 2).astype("float32").T.T * x.reshape(2, 2),
}


@pytest.mark.parametrize("name", VIEWED)
def test_views_of_truths(name):
    m, x = arrays("float32")
    found = minijax.jit(VIEWED[name])(m, x).ravel()
    wanted = [0, 0, 0, -np.inf] if name in ("column", "row") else [0, 0, 0, 1]
    np.testing.assert_array_equal(found, np.float32(wanted))


def test_a_mask_of_attention():
    """The one that is published: it was NaN from the first step."""

    def attention(s, m):
        return minijax.nn.softmax(s + (m == 0) * float("-inf"), axis=1)

    s, m = jnp.zeros((2, 2)), jnp.tril(jnp.ones((2, 2), bool))
    wanted = np.float32([[1, 0], [0.5, 0.5]])
    for f in (attention, minijax.jit(attention)):
        np.testing.assert_array_equal(f(s, m), wanted)
        slopes = minijax.grad(lambda s, f=f: (f(s, m) ** 2).sum())(s)
        assert np.isfinite(slopes).all()


@pytest.mark.parametrize("of", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_slopes(of):
    m, x = arrays("float32")
    loss = lambda x: (m * x).sum()  # noqa: E731
    np.testing.assert_array_equal(of(minijax.grad(loss))(x), np.float32(TRUTHS))
    value, slope = minijax.jvp(of(lambda x: m * x), (x,), (x,))
    np.testing.assert_array_equal(value, chosen("float32"))
    np.testing.assert_array_equal(slope, chosen("float32"))


def test_the_program_is_that_of_jax():
    m, x = arrays("float32")
    slope = lambda m, x: minijax.grad(lambda x: (m * x).sum())(x)  # noqa: E731
    for f in (PROGRAMS["product"], slope):
        names = [eqn.primitive.name for eqn in minijax.make_jaxpr(f)(m, x).eqns]
        assert names[:2] == ["convert_element_type", "mul"]
        assert "select_n" not in names


def test_weak_types():
    m, _ = arrays("float32")
    for f in (lambda m: m * 2.0, minijax.jit(lambda m: m * 2.0)):
        assert f(m).dtype == "float32"
        assert f(m).weak_type
    assert not (m * jnp.float32(2)).weak_type


def test_numbers_of_python_are_numbers():
    """A bool that a program knows is the number 0 or 1, as in JAX."""
    x = jnp.array([np.inf])
    products = jnp.multiply, jnp.inner, jnp.dot, jnp.outer, jnp.kron
    numbers = False, np.bool_(False)
    cases = [partial(f, each) for f in products for each in numbers]
    for f in (lambda x: x * False, lambda x: x * np.bool_(False), *cases):
        assert np.isnan(f(x)).all()
        assert np.isnan(minijax.jit(f)(x)).all()


def test_integers_multiply():
    m = jnp.array(TRUTHS)
    assert (m * jnp.arange(4)).tolist() == [0, 0, 0, 3]
    assert (m * m).tolist() == TRUTHS


def test_shapes_that_do_not_meet():
    with pytest.raises((ValueError, TypeError), match="[Ii]ncompatible shapes"):
        jnp.array([True, False]) * jnp.ones(3)


T3, V3 = [False, False, True], [np.inf, np.nan, 2.0]
M, X = [[False, True], [True, False]], [[np.inf, 2.0], [3.0, np.nan]]
OF_VECTORS = "dot inner vdot vecdot matmul outer kron polymul".split()
PRODUCTS = {  # each function that multiplies, with the operands in both orders
    **{name: getattr(jnp, name) for name in OF_VECTORS},
    "tensordot": lambda a, b: jnp.tensordot(a, b, 1),
    "tensordot of no axes": lambda a, b: jnp.tensordot(a, b, 0),
    "matmul of a row and a column": lambda a, b: a[None] @ b[:, None],
    "matmul of a column and a row": lambda a, b: a[:, None] @ b[None],
    "matvec of one": lambda a, b: a[:, None] @ b[1:2],
    "dot_general": lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ()))),
    "einsum i,j->ij": lambda a, b: jnp.einsum("i,j->ij", a, b),
    "einsum i,->i": lambda a, b: jnp.einsum("i,->i", a, b[1]),
    "einsum i,i": lambda a, b: jnp.einsum("i,i", a, b),
    "einsum i,i->i": lambda a, b: jnp.einsum("i,i->i", a, b),
    "of three": lambda a, b: jnp.einsum("i,i,i->i", a, b, a),
    "linalg.vecdot": jnp.linalg.vecdot,
    "linalg.outer": jnp.linalg.outer,
    "multiply.outer": jnp.multiply.outer,
    "average": lambda a, b: jnp.average(b, weights=a),
    "polyval": lambda a, b: jnp.polyval(jnp.stack([b, b]), a),
}
OF_MATRICES = {
    "vdot": jnp.vdot,
    "vecdot": jnp.vecdot,
    "kron": jnp.kron,
    "tensordot": lambda a, b: jnp.tensordot(a, b, 2),
    **{
        f"einsum {each}": lambda a, b, each=each: jnp.einsum(each, a, b)
        for each in ("ij,ij->", "ij,ij->i", "ij,ij->ij", "ij,ji->ij", "ij,ji")
    },
}
TRUTHS_FIRST = {"average", "polyval", "of three"}


def ways(f, m, x, swapped):
    """Values and slopes of a product, eager and compiled."""
    g = (lambda m, x: f(x, m)) if swapped else f
    loss = lambda m, x: minijax.grad(lambda x: g(m, x).sum())(x)  # noqa: E731
    return [
        [how(each)(m, x) for how in (lambda f: f, minijax.jit)] for each in (g, loss)
    ]


@pytest.mark.parametrize("swapped", [False, True], ids=["truths first", "last"])
@pytest.mark.parametrize(
    "name", [*PRODUCTS, *(f"{n} of matrices" for n in OF_MATRICES)]
)
def test_products_choose(name, swapped):
    """An infinity or a NaN comes through where it meets True, and nowhere else.

    Where ones stand for them and zeros for the others, the result says where that is.
    """
    if swapped and name in TRUTHS_FIRST:
        pytest.skip("the operands have parts of their own")
    if name in PRODUCTS:
        f, m, x = PRODUCTS[name], jnp.array(T3), jnp.array(V3)
    else:
        f = OF_MATRICES[name.removesuffix(" of matrices")]
        m, x = jnp.array(M), jnp.array(X)
    (eager, compiled), slopes = ways(f, m, x, swapped)
    np.testing.assert_array_equal(eager, compiled)
    np.testing.assert_array_equal(*slopes)
    assert eager.dtype == compiled.dtype == x.dtype
    finite = jnp.where(jnp.isfinite(x), x, 5.0)
    (plain, _), plain_slopes = ways(f, m, finite, swapped)
    (met, _), _ = ways(f, m, jnp.where(jnp.isfinite(x), 0.0, 1.0), swapped)
    np.testing.assert_array_equal(jnp.isfinite(eager), met == 0)
    np.testing.assert_array_equal(*[np.where(met == 0, y, 0) for y in (eager, plain)])
    np.testing.assert_array_equal(slopes[0], plain_slopes[0])


@pytest.mark.parametrize("name", [*PRODUCTS])
def test_products_on_the_python_backend(name):
    m, x = jnp.array(T3), jnp.array(V3)
    f = PRODUCTS[name]
    np.testing.assert_array_equal(minijax.jit(f, backend="python")(m, x), f(m, x))


@pytest.mark.parametrize("f", [jnp.power, jnp.float_power])
def test_slopes_of_powers(f):
    """The slope of 1 is 0, wherever that is."""
    m, x = jnp.array([*T3, False]), jnp.array([*V3, 0.0])
    slope = minijax.grad(lambda x: f(x, m).sum())
    for g in (slope, minijax.jit(slope)):
        np.testing.assert_array_equal(g(x), np.float32([0, 0, 1, 0]))


def test_conversions_in_contractions():
    """In a compiled program bools are found behind conversions and views."""
    m, x = jnp.array(M), jnp.array(X)
    for dtype in ("float32", "float16", "bfloat16"):

        @minijax.jit
        def sums(m, x, dtype=dtype):
            return jnp.einsum("ij,ji->i", m.T.astype(dtype), x.astype(dtype))

        wanted = jnp.where(m, x.T, 0).sum(1)
        np.testing.assert_array_equal(sums(m.T, x).astype("float32"), wanted)


def test_matrix_products_multiply():
    m, x = jnp.array(M), jnp.array(X)
    for f in (jnp.matmul, minijax.jit(jnp.matmul)):
        assert np.isnan(f(m, x)).sum() == 3


@pytest.mark.parametrize("of", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_softmax_with_tangents_that_are_left_out(of):
    x, m = jnp.zeros(4), jnp.array([False, False, True, True])
    t = jnp.array([np.inf, np.nan, 1.0, 1.0])
    f = of(lambda x: minijax.nn.softmax(x, where=m))
    np.testing.assert_array_equal(minijax.jvp(f, (x,), (t,))[1], np.zeros(4))
