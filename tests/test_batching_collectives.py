"""Named axes: sums, means, extremes and exchanges between the examples of a vmap."""

import itertools
from functools import partial

import numpy as np
import pytest

from minijax import lax
from minijax.batching.vmap import vmap
from minijax.core import eval_jaxpr
from minijax.jaxprs.jaxpr import make_jaxpr
from minijax.pytrees.api_util import jvp

F32 = np.dtype("float32")
RNG = np.random.default_rng(7)
X = RNG.normal(size=3).astype(F32)
M = RNG.normal(size=(2, 3)).astype(F32)
CUBE = RNG.normal(size=(3, 3, 3, 3)).astype(F32)
WIDE = RNG.normal(size=(3, 6, 6, 6)).astype(F32)
AXES = range(4)
over_i = partial(vmap, axis_name="i")


def close(result, expected):
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize(
    ("collective", "fold"),
    [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max), (lax.pmin, np.min)],
)
def test_reductions(collective, fold, axis):
    result = over_i(lambda x: collective(x, "i"), axis, out_axes=None)(CUBE)
    close(result, fold(CUBE, axis))


def test_values_that_all_examples_share():
    def f(x):
        return lax.psum(M, "i"), lax.pmean(M, "i"), lax.pmax(M, "i"), lax.pmin(M, "i")

    total, *others = over_i(f, out_axes=None)(X)
    close(total, 3 * M)
    for other in others:
        close(other, M)


def test_python_numbers_fold():
    seen = []

    def f(x):
        seen.append((lax.psum(1, "i"), lax.psum(2.5, "i"), lax.axis_size("i")))
        return x

    over_i(f)(X)
    assert seen == [(3, 7.5, 3)]
    assert [type(number) for number in seen[0]] == [int, float, int]


def test_dtypes():
    def f(x):
        return lax.psum(x, "i"), lax.pmean(x, "i"), lax.pmax(x, "i")

    dtypes = [y.dtype.name for y in over_i(f)(np.arange(3, dtype=np.int32))]
    assert dtypes == ["int32", "float32", "int32"]
    assert over_i(lambda x: lax.psum(x, "i"))(np.ones(3, bool)).dtype == np.int32
    half = np.ones(3, np.float16)
    assert over_i(lambda x: lax.pmean(x, "i"))(half).dtype == np.float16


@pytest.mark.parametrize("tiled", [False, True])
def test_bools_are_not_scattered(tiled):
    ones = np.ones((3, 3), bool)
    said = r"psum_scatter .*bool\[3\]: bools are not added.*\.astype\(int\)"
    for f in (lambda x: x, lambda x: ones[0]):  # of each example, and of all
        with pytest.raises(TypeError, match=said):
            over_i(lambda x, f=f: lax.psum_scatter(f(x), "i", tiled=tiled))(ones)
    counted = over_i(lambda x: lax.psum_scatter(x.astype(int), "i"))(ones)
    np.testing.assert_array_equal(counted, [3, 3, 3])


def test_pytrees():
    result = over_i(lambda x: lax.psum({"x": x, "n": (1,)}, "i"), out_axes=None)(X)
    close(result["x"], X.sum())
    assert result["n"] == (3,)


def test_axis_index():
    index = over_i(lambda x: lax.axis_index("i"))(X)
    assert (np.asarray(index).tolist(), index.dtype) == ([0, 1, 2], np.int32)
    both = vmap(
        over_i(lambda: lax.axis_index(("j", "i")), axis_size=3),
        axis_size=2,
        axis_name="j",
    )()
    assert np.asarray(both).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_several_names():
    def f(x):
        return lax.psum(x, ("i", "j")), lax.psum(x, "i"), lax.psum(x, "j")

    both, over_rows, over_columns = over_i(vmap(f, axis_name="j"))(M)
    close(both, np.full((2, 3), M.sum()))
    close(over_rows, np.broadcast_to(M.sum(0), (2, 3)))
    close(over_columns, np.broadcast_to(M.sum(1)[:, None], (2, 3)))


def test_inner_axis_of_the_same_name_wins():
    result = over_i(over_i(lambda x: lax.psum(x, "i")))(M)
    close(result, np.broadcast_to(M.sum(1)[:, None], (2, 3)))


def test_an_axis_without_a_name_passes_on():
    result = over_i(vmap(lambda x: lax.psum(x, "i")))(M)
    close(result, np.broadcast_to(M.sum(0), (2, 3)))


def test_name_ends_with_the_mapped_function():
    with pytest.raises(NameError, match="unbound axis name: i"):
        over_i(lambda x: x)(X)
        lax.axis_size("i")


PERMUTATIONS = [
    [(0, 1), (1, 2), (2, 0)],
    [(2, 0), (1, 1), (0, 2)],
    [(0, 0), (1, 1), (2, 2)],
    [(0, 1), (1, 2)],
    [(2, 0)],
    [],
]


@pytest.mark.parametrize("perm", PERMUTATIONS, ids=str)
@pytest.mark.parametrize("axis", [*AXES, None])
def test_ppermute(perm, axis):
    result = over_i(lambda x: lax.ppermute(x, "i", perm), axis, axis_size=3)(CUBE)
    examples = CUBE if axis is not None else np.broadcast_to(CUBE, (3, *CUBE.shape))
    examples = np.moveaxis(examples, axis or 0, 0)
    expected = np.zeros_like(examples)
    for source, destination in perm:
        expected[destination] = examples[source]
    close(result, expected)


def examples_of(x, axis):
    """Return the list of examples; three times the same, if `axis` is None."""
    return [x] * 3 if axis is None else list(np.moveaxis(x, axis, 0))


@pytest.mark.parametrize(
    ("place", "tiled"), list(itertools.product((0, 1, -1), (False, True)))
)
@pytest.mark.parametrize("axis", [*AXES, None])
def test_all_gather(place, tiled, axis):
    def f(x):
        return lax.all_gather(x, "i", axis=place, tiled=tiled)

    join = np.concatenate if tiled else np.stack
    result = over_i(f, axis, out_axes=None, axis_size=3)(CUBE)
    close(result, join(examples_of(CUBE, axis), place))


@pytest.mark.parametrize(
    ("place", "tiled"), list(itertools.product(range(3), (False, True)))
)
@pytest.mark.parametrize("axis", [*AXES, None])
def test_psum_scatter(place, tiled, axis):
    x = (
        np.moveaxis(WIDE if tiled else CUBE, 0, axis)
        if axis is not None
        else WIDE[:, :3]
    )
    result = over_i(
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=place, tiled=tiled),
        axis,
        axis_size=3,
    )(x if tiled or axis is not None else CUBE)
    x = x if tiled or axis is not None else CUBE
    total = sum(examples_of(x, axis))
    parts = np.split(total, 3, place)
    close(result, np.stack(parts if tiled else [p.squeeze(place) for p in parts]))


@pytest.mark.parametrize(
    ("split", "concat", "tiled"),
    list(itertools.product(range(3), range(3), (False, True))),
)
@pytest.mark.parametrize("axis", [*AXES, None])
def test_all_to_all(split, concat, tiled, axis):
    x = CUBE if axis is None else np.moveaxis(WIDE if tiled else CUBE, 0, axis)
    result = over_i(
        lambda x: lax.all_to_all(x, "i", split, concat, tiled=tiled), axis, axis_size=3
    )(x)
    sent = [np.split(example, 3, split) for example in examples_of(x, axis)]
    received = [[parts[i] for parts in sent] for i in range(3)]
    if tiled:
        expected = [np.concatenate(parts, concat) for parts in received]
    else:
        expected = [np.stack([p.squeeze(split) for p in ps], concat) for ps in received]
    close(result, np.stack(expected))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.psum(x, "i"),
        lambda x: lax.pmax(x, "i"),
        lambda x: lax.ppermute(x, "i", PERMUTATIONS[3]),
        lambda x: lax.all_gather(x, "i", axis=1),
        lambda x: lax.all_gather(x, "i", axis=-1),
        lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1),
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=0),
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        lambda x: lax.all_to_all(x, "i", 0, 1),
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    ],
)
@pytest.mark.parametrize("other", range(3))
def test_past_another_axis(f, other):
    """An axis in between, without that name, is one more loop around the collective."""
    result = over_i(vmap(f, in_axes=other))(CUBE)
    slices = [np.take(CUBE, j, other + 1) for j in range(3)]
    close(result, np.stack([over_i(f)(x) for x in slices], 1))


def test_standardize_is_what_it_would_be_by_hand():
    def standardize(x):
        centred = x - lax.pmean(x, "i")
        variance = lax.pmean(centred * centred, "i")
        return lax.mul(centred, lax.rsqrt(lax.add(variance, 1e-5)))

    expected = (M - M.mean(0)) / np.sqrt(M.var(0) + 1e-5)
    close(over_i(standardize)(M), expected)


def test_jvp_under_and_over_vmap():
    def f(x):
        return lax.psum(lax.sin(x), "i")

    inside = over_i(lambda x, t: jvp(f, (x,), (t,)))(X, 2 * X)
    outside = jvp(over_i(f), (X,), (2 * X,))
    for values in (inside, outside):
        close(values[0], np.full(3, np.sin(X).sum()))
        close(values[1], np.full(3, (np.cos(X) * 2 * X).sum()))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.ppermute(x, "i", PERMUTATIONS[0]),
        lambda x: lax.all_gather(x, "i"),
        lambda x: lax.psum_scatter(x, "i"),
        lambda x: lax.all_to_all(x, "i", 0, 0),
    ],
)
def test_exchanges_are_linear(f):
    value, slope = jvp(over_i(f), (CUBE,), (2 * CUBE,))
    close(slope, 2 * value)


def test_maximum_has_no_derivative():
    with pytest.raises(NotImplementedError, match="all_gather"):
        over_i(lambda x: jvp(lambda y: lax.pmax(y, "i"), (x,), (x,)))(X)


def under_i(f):
    return lambda: over_i(f)(CUBE)


ERRORS = [
    (NameError, "unbound axis name: i", lambda: lax.psum(X, "i")),
    (NameError, "unbound axis name: k", under_i(lambda x: lax.psum(x, "k"))),
    (NameError, "unbound axis name: k", under_i(lambda x: lax.pmax(x, ("i", "k")))),
    (NameError, "unbound axis name: None", under_i(lambda x: lax.psum(x, None))),
    (NameError, "unbound axis name: k", lambda: lax.axis_index("k")),
    (NameError, "unbound axis name: k", lambda: lax.axis_size("k")),
    (NameError, "unbound axis name: k", lambda: lax.all_gather(X, "k")),
    (NameError, "unbound axis name: k", lambda: lax.psum_p.bind(X, axis_name=("k",))),
    (ValueError, "duplicate axis name", under_i(lambda x: lax.psum(x, ("i", "i")))),
    (
        NotImplementedError,
        "psum under vmap takes no axis_index_groups",
        under_i(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]])),
    ),
    (TypeError, "type <class 'str'>", under_i(lambda x: lax.psum("a", "i"))),
    (
        ValueError,
        "sources and destinations must be unique",
        under_i(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)])),
    ),
    (
        ValueError,
        "less than the axis size 3",
        under_i(lambda x: lax.ppermute(x, "i", [(0, 5)])),
    ),
    (
        ValueError,
        "all_gather takes at least one axis name",
        under_i(lambda x: lax.all_gather(x, ())),
    ),
    (
        NotImplementedError,
        "ppermute over .* of which 'j' is an axis of vmap",
        lambda: over_i(
            vmap(lambda x: lax.ppermute(x, ("i", "j"), [(0, 1)]), axis_name="j")
        )(M),
    ),
    (ValueError, "axis 5 is out of", under_i(lambda x: lax.all_gather(x, "i", axis=5))),
    (
        ValueError,
        r"axis 0 of float32\[3\], one entry to each example, so its size has to be "
        "equal to the axis size 2",
        lambda: over_i(lambda x: lax.psum_scatter(x, "i"))(M),
    ),
    (
        ValueError,
        "so 3 has to be divisible by the axis size 2",
        lambda: over_i(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True))(M),
    ),
]


def test_gathering_and_dealing_out_over_two_names():
    def over_both(f, x):
        return over_i(vmap(f, axis_name="j"))(x)

    one, two = ("i", "j"), ("j", "i")
    found = over_both(lambda x: lax.all_gather(x, one), M)
    assert np.array_equal(found[1, 2], M.ravel())
    found = over_both(lambda x: lax.all_gather(x, two), M)
    assert np.array_equal(found[0, 1], M.T.ravel())
    rows = np.arange(36.0).reshape(2, 3, 6)
    for names, counted in (one, (2, 3)), (two, (3, 2)):
        found = over_both(lambda x, n=names: lax.psum_scatter(x, n), rows)
        sums = rows.sum((0, 1)).reshape(counted)
        assert np.array_equal(found, sums if names is one else sums.T)
        tiled = over_both(lambda x, n=names: lax.psum_scatter(x, n, tiled=True), rows)
        assert np.array_equal(tiled[..., 0], found)


@pytest.mark.parametrize(("error", "message", "call"), ERRORS)
def test_errors(error, message, call):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("names", ["ij", "ji"])
@pytest.mark.parametrize("split", range(3))
@pytest.mark.parametrize("concat", range(3))
def test_exchange_along_two_names(tiled, names, split, concat):
    shape = [2, 3, 6, 6, 6]
    x = np.arange(np.prod(shape), dtype=F32).reshape(shape)
    exchange = partial(lax.all_to_all, axis_name=tuple(names), tiled=tiled)
    both = lambda x: exchange(x, split_axis=split, concat_axis=concat)  # noqa: E731
    result = vmap(vmap(both, axis_name="j"), axis_name="i")(x)
    places = [(0, 1), (1, 0)][names == "ji"]  # one name of both sizes is the same
    flat = x.transpose(*places, 2, 3, 4).reshape(6, 6, 6, 6)
    single = partial(lax.all_to_all, axis_name="k", tiled=tiled)
    one = lambda x: single(x, split_axis=split, concat_axis=concat)  # noqa: E731
    expected = np.asarray(vmap(one, axis_name="k")(flat))
    sizes = [shape[i] for i in places]
    expected = expected.reshape(*sizes, *expected.shape[1:])
    close(result, expected.transpose(*places, *range(2, expected.ndim)))


def test_exchange_along_two_names_needs_their_product():
    both = lambda x: lax.all_to_all(x, ("i", "j"), 0, 0)  # noqa: E731
    with pytest.raises(ValueError, match="equal to the axis size 6"):
        vmap(vmap(both, axis_name="j"), axis_name="i")(np.ones((2, 3, 5)))


@pytest.mark.parametrize("number", [2.0, 2, 1 + 2j])
def test_sum_of_what_is_not_mapped_in_a_program(number):
    closed = make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(number)

    def run(_, x):
        return eval_jaxpr(closed.jaxpr, [], x)[0]

    mapped = over_i(run, in_axes=(0, None), out_axes=None)
    assert mapped(np.zeros(4, F32), number) == 4 * number
