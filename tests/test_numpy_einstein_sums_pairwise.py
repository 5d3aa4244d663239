"""Einstein summation, against `numpy.einsum`; its paths; derivatives and batches."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, make_jaxpr, vmap
from minijax.numpy import einstein_sums as paths
from minijax.numpy.einstein_sums import letter, parse_subscripts
from minijax.test_util import check_grads
from tests.commands import some
from tests.einsum_cases import LONG, MISTAKES, SHAPES

DTYPES = "float32", "int32", "bool", "complex64", "float16", "uint8"
WIDE = {"int32": "int64", "uint8": "int64", "float16": "float64"}
ALL = SHAPES | LONG


def operands(spec, dtype, seed=0):
    rng = np.random.default_rng(seed)
    high = 2 if dtype == "bool" else 4
    return [rng.integers(0, high, shape).astype(dtype) for shape in ALL[spec]]


@pytest.mark.parametrize(("spec", "dtype"), some(itertools.product(ALL, DTYPES), 2))
def test_values(spec, dtype):
    xs = operands(spec, dtype)
    wide = [x.astype(WIDE.get(dtype, dtype)) for x in xs]
    expected = np.einsum(spec, *wide).astype(dtype)
    for call in (jnp.einsum, jit(jnp.einsum, static_argnums=0)):
        found = call(spec, *xs)
        assert found.dtype == dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-3 * (dtype == "float16"))


ORDERS = [True, False, "auto", "greedy", "optimal"]


@pytest.mark.parametrize("spec, optimize", some(itertools.product(ALL, ORDERS), 2))
def test_orders_agree(spec, optimize):
    xs = operands(spec, "int32", seed=1)
    expected = np.einsum(spec, *xs)
    np.testing.assert_array_equal(jnp.einsum(spec, *xs, optimize=optimize), expected)
    path, info = jnp.einsum_path(spec, *xs, optimize=optimize)
    assert len(path) == max(1, len(xs) - 1) and info.path == path
    np.testing.assert_array_equal(jnp.einsum(spec, *xs, optimize=path), expected)
    assert info.eq.count("->") == 1 and info.eq in str(info)


@pytest.mark.parametrize("spec", ["ij,jk->ik", "iij,jkk->ik", "ii->i", *LONG])
def test_derivatives_and_batches(spec):
    xs = [x + np.float32(0.5) for x in operands(spec, "float32")]
    check_grads(lambda *xs: jnp.einsum(spec, *xs), xs, order=2, rtol=1e-2, atol=1e-2)
    batch = [np.stack([x, 2 * x, -x]) for x in xs]
    found = vmap(lambda *xs: jnp.einsum(spec, *xs))(*batch)
    for place in range(3):
        expected = np.einsum(spec, *[x[place] for x in batch])
        np.testing.assert_allclose(found[place], expected, rtol=1e-5)


def test_axes_as_lists():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for last in ([], [[2, 0]]):
        expected = np.einsum(x, [0, 1], y, [1, 2], *last)
        found = jnp.einsum(x, [0, 1], y, [1, 2], *last)
        np.testing.assert_array_equal(found, expected)
    z = np.arange(24).reshape(2, 3, 4)
    found = jnp.einsum(z, [..., 0], [0, ...])
    np.testing.assert_array_equal(found, np.moveaxis(z, -1, 0))
    found = jnp.einsum(x, ["row", "in"], y, ["in", "col"], ["col", "row"])
    np.testing.assert_array_equal(found, (x @ y).T)


def test_types():
    weak = jnp.einsum(",", 2.0, 3.0)
    assert weak.weak_type and weak.dtype == "float32"
    assert not jnp.einsum(",", 2.0, np.float32(3)).weak_type
    x = np.ones((2, 2), "int8")
    found = jnp.einsum("ij,jk", x, x, preferred_element_type="float32")
    assert found.dtype == "float32"
    assert jnp.einsum("ij,jk", x, x.astype("float16")).dtype == "float16"
    big = np.full(300, 100, "int8")
    found = jnp.einsum("i->", big, preferred_element_type="int32")
    assert int(found) == 30000 and found.dtype == "int32"


def test_a_product_of_its_own():
    seen = []

    def product(lhs, rhs, numbers, precision, preferred_element_type):
        seen.append(numbers)
        return jnp.zeros((2, 2))

    jnp.einsum("ij,jk", np.ones((2, 2)), np.ones((2, 2)), _dot_general=product)
    assert seen == [(((1,), (0,)), ((), ()))]


def test_one_product_for_two_operands():
    x = np.ones((2, 3), "float32")
    program = make_jaxpr(lambda x, y: jnp.einsum("ij,kj->ki", x, y))(x, x)
    assert [str(eqn.primitive) for eqn in program.eqns] == ["dot_general"]


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    x = jnp.ones((2, 3))
    errors = ValueError, TypeError, NotImplementedError, KeyError
    with pytest.raises(errors) as caught:
        MISTAKES[name](jnp, x)
    assert len(str(caught.value)) > 15


def test_the_exact_search_is_exact():
    """No order of a chain of matrices costs less than the one that is found."""
    rng = np.random.default_rng(3)

    def every_cost(terms, output, sizes):
        if len(terms) == 1:
            return [0]
        found = []
        for pair in itertools.combinations(range(len(terms)), 2):
            result = paths._result(terms, pair, output)
            either = terms[pair[0]] | terms[pair[1]]
            shared = terms[pair[0]] & terms[pair[1]]
            cost = paths.flops(either, bool(shared - result), 2, sizes)
            rest = [t for i, t in enumerate(terms) if i not in pair] + [result]
            found += [cost + more for more in every_cost(rest, output, sizes)]
        return found

    for count in [2, 3, 4] * 10:
        letters = [letter(i) for i in range(count + 1)]
        sizes = dict(zip(letters, map(int, rng.integers(1, 9, count + 1))))
        pairs = ["".join(pair) for pair in zip(letters, letters[1:])]
        text = ",".join(pairs) + f"->{letters[0]}{letters[-1]}"
        found = parse_subscripts(text, [(sizes[a], sizes[b]) for a, b in pairs])
        terms, output = [*map(frozenset, pairs)], frozenset(found.output)
        path = paths.optimal_path(terms, output, sizes)
        cost = sum(step.flops for step in paths.contraction_list(found, path))
        assert cost == min(every_cost(terms, output, sizes))


def test_searches_without_opt_einsum(monkeypatch):
    monkeypatch.setattr(paths.importlib.util, "find_spec", lambda name: None)
    xs = operands("ab,bc,cd,de,ef,fg,ga->", "int32")
    for optimize in paths.OURS:
        path, _ = jnp.einsum_path("ab,bc,cd,de,ef,fg,ga->", *xs, optimize=optimize)
        assert len(path) == 6
    with pytest.raises(KeyError, match="opt_einsum"):
        jnp.einsum_path("a,a,a", *[np.ones(2)] * 3, optimize="random-greedy")


def test_gradient_of_a_diagonal_is_on_the_diagonal():
    found = grad(lambda x: jnp.einsum("ii->i", x).sum())(jnp.ones((3, 3)))
    np.testing.assert_array_equal(found, np.eye(3))
