"""`minijax.numpy` against NumPy: numbers, shapes, broadcasting; and clear errors."""

import copy
import math
import pickle

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax._public import PUBLIC
from minijax.array import shape_rules
from minijax.avals import typeof
from minijax.core import Array, Trace, Tracer, set_current_trace
from tests import numpy_cases as cases

quick = settings(deadline=None, max_examples=20, derandomize=True)

NAMES = cases.environment(jnp)
FLOATS = st.floats(-8, 8, width=32)


def matrices(min_dims=0, min_side=0):
    """Small arrays of floats of any shape."""
    sides = {"min_side": min_side, "max_side": 4}
    shapes = arrays.array_shapes(min_dims=min_dims, max_dims=3, **sides)
    return arrays.arrays(np.float32, shapes, elements=FLOATS)


def agree(ours, theirs, rtol=2e-5):
    """The same shape and, up to rounding, the same numbers."""
    assert isinstance(ours, Array)
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=rtol, atol=1e-5)


ELEMENTWISE = """
    positive negative absolute sign square exp expm1 sin cos tan arctan sinh cosh tanh
    arcsinh cbrt floor ceil trunc rint logical_not deg2rad rad2deg isnan isinf isfinite
    round
""".split()
OF_POSITIVE = "log log2 log10 log1p sqrt reciprocal exp2".split()
OF_PAIRS = """
    add subtract multiply maximum minimum arctan2 hypot logaddexp equal not_equal less
    less_equal greater greater_equal logical_and logical_or logical_xor
""".split()
OF_DIVISORS = "divide floor_divide remainder fmod".split()


@pytest.mark.parametrize("name", ELEMENTWISE)
@quick
@given(x=matrices())
def test_elementwise(name, x):
    agree(getattr(jnp, name)(x), getattr(np, name)(x))


@pytest.mark.parametrize("name", OF_POSITIVE)
@quick
@given(x=matrices())
def test_elementwise_on_positive_numbers(name, x):
    x = abs(x) + np.float32(0.25)
    agree(getattr(jnp, name)(x), getattr(np, name)(x))


@st.composite
def pairs(draw):
    """Two arrays that broadcast together."""
    shapes = draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_side=3))
    return [
        draw(arrays.arrays(np.float32, shape, elements=FLOATS))
        for shape in shapes.input_shapes
    ]


@pytest.mark.parametrize("name", OF_PAIRS)
@quick
@given(operands=pairs())
def test_pairs_broadcast(name, operands):
    agree(getattr(jnp, name)(*operands), getattr(np, name)(*operands))


@pytest.mark.parametrize("name", OF_DIVISORS)
@quick
@given(operands=pairs())
def test_division(name, operands):
    x, y = operands
    y = np.where(abs(y) < 0.5, np.float32(1.5), y)
    quotient = np.asarray(x, np.float64) / y
    assume(np.all(abs(quotient - np.rint(quotient)) > 1e-3) or name == "divide")
    agree(getattr(jnp, name)(x, y), getattr(np, name)(x, y), 1e-3)


@quick
@given(x=st.integers(-99, 99), y=st.integers(-9, 9).filter(bool))
def test_integer_division_is_pythons(x, y):
    quotient, rest = jnp.divmod(np.int32(x), np.int32(y))
    assert (int(quotient), int(rest)) == divmod(x, y)
    assert int(jnp.floor_divide(np.int32(x), y)) == x // y
    assert int(jnp.fmod(np.int32(x), y)) == math.fmod(x, y)


@quick
@given(x=st.integers(-5, 5), n=st.integers(0, 12))
def test_integer_powers(x, n):
    assert int(jnp.power(np.int32(x), n)) == x**n
    assert int(jnp.power(np.int32(x), np.int32([n]))[0]) == x**n


@quick
@given(x=st.floats(-3, 3, width=32), n=st.integers(-3, 4))
def test_static_powers_multiply(x, n):
    assume(n >= 0 or abs(x) > 0.1)
    agree(jnp.power(np.float32(x), n), np.float32(x) ** np.float32(n), 1e-4)


def test_shapes_do_not_change_what_is_added():
    assert jnp.add(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\(2, 3\), \(2,\)"):
        jnp.add(np.ones((2, 3)), np.ones(2))


FOLDS = "sum prod mean var std max min any all ptp".split()


@pytest.mark.parametrize("name", FOLDS)
@quick
@given(data=st.data(), x=matrices(min_side=1), keepdims=st.booleans())
def test_folds(name, data, x, keepdims):
    axis = data.draw(st.none() | arrays.valid_tuple_axes(x.ndim)) if x.ndim else None
    assume(axis != ())
    ours = getattr(jnp, name)(x, axis=axis, keepdims=keepdims)
    agree(ours, getattr(np, name)(x, axis=axis, keepdims=keepdims), 1e-4)


@pytest.mark.parametrize(
    ("name", "initial"), [("sum", 0), ("prod", 1), ("max", -9), ("min", 9)]
)
@quick
@given(data=st.data(), x=matrices())
def test_folds_of_some_elements(name, initial, data, x):
    where = data.draw(arrays.arrays(bool, x.shape))
    ours = getattr(jnp, name)(x, where=where, initial=initial)
    agree(ours, getattr(np, name)(x, where=where, initial=np.float32(initial)), 1e-4)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@quick
@given(data=st.data(), x=matrices(min_side=1))
def test_statistics_of_some_elements(name, data, x):
    where = data.draw(arrays.arrays(bool, x.shape))
    assume(where.any())
    agree(getattr(jnp, name)(x, where=where), getattr(np, name)(x, where=where), 1e-3)


@pytest.mark.parametrize("name", "argmax argmin cumsum cumprod count_nonzero".split())
@quick
@given(data=st.data(), x=matrices(min_dims=1, min_side=1))
def test_along_an_axis(name, data, x):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    agree(getattr(jnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis), 1e-3)


def test_sums_do_not_wrap_around():
    assert int(jnp.sum(np.uint8([200, 100]))) == 300
    assert jnp.sum(np.uint8([1])).dtype == np.uint32
    assert jnp.sum(np.array([True, True])).dtype == np.int32
    assert float(jnp.sum(np.ones(4096, np.float16))) == 4096
    assert jnp.mean(np.ones(4096, np.float16)).dtype == np.float16


@quick
@given(data=st.data(), x=matrices(min_dims=1))
def test_new_shapes(data, x):
    order = data.draw(st.permutations(range(x.ndim)))
    agree(jnp.transpose(x, order), np.transpose(x, order))
    agree(jnp.transpose(x), x.T)
    agree(jnp.ravel(x), x.ravel())
    agree(jnp.reshape(x, x.shape[::-1]), x.reshape(x.shape[::-1]))
    agree(jnp.reshape(x, x.shape[::-1], "F"), x.reshape(x.shape[::-1], order="F"))
    one, two = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
    agree(jnp.swapaxes(x, one, two), np.swapaxes(x, one, two))
    agree(jnp.moveaxis(x, one, two), np.moveaxis(x, one, two))
    wide = jnp.expand_dims(x, one)
    agree(wide, np.expand_dims(x, one))
    agree(jnp.squeeze(wide, one), x)
    agree(jnp.broadcast_to(x, (2, *x.shape)), np.broadcast_to(x, (2, *x.shape)))


@quick
@given(data=st.data(), x=matrices(min_dims=1))
def test_pieces(data, x):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agree(jnp.concatenate([x, x], axis), np.concatenate([x, x], axis))
    agree(jnp.stack([x, x], axis), np.stack([x, x], axis))
    agree(jnp.flip(x, axis), np.flip(x, axis))
    for name in ("vstack", "hstack"):
        agree(getattr(jnp, name)([x, x]), getattr(np, name)([x, x]))
    pieces = data.draw(st.integers(1, 4))
    for one, other in zip(
        jnp.array_split(x, pieces, axis), np.array_split(x, pieces, axis), strict=True
    ):
        agree(one, other)


@quick
@given(data=st.data(), x=matrices(min_dims=1))
def test_repetition(data, x):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    shift, times = data.draw(st.integers(-5, 5)), data.draw(st.integers(0, 3))
    agree(jnp.roll(x, shift, axis), np.roll(x, shift, axis))
    agree(jnp.repeat(x, times, axis), np.repeat(x, times, axis))
    size = x.size if axis is None else x.shape[axis]
    counts = data.draw(arrays.arrays(int, size, elements=st.integers(0, 2)))
    agree(jnp.repeat(x, counts, axis), np.repeat(x, counts, axis))
    reps = data.draw(st.lists(st.integers(0, 2), max_size=4))
    agree(jnp.tile(x, reps), np.tile(x, reps))
    widths = data.draw(arrays.arrays(int, (x.ndim, 2), elements=st.integers(0, 2)))
    agree(jnp.pad(x, widths), np.pad(x, widths))
    ends = widths + 0.5
    agree(
        jnp.pad(x, widths, constant_values=ends),
        np.pad(x, widths, constant_values=ends),
    )


@quick
@given(rows=st.integers(0, 4), columns=st.integers(0, 4), k=st.integers(-5, 5))
def test_patterns(rows, columns, k):
    agree(jnp.eye(rows, columns, k), np.eye(rows, columns, k))
    agree(jnp.tri(rows, columns, k), np.tri(rows, columns, k))
    table = np.arange(float(rows * columns)).reshape(rows, columns)
    for name in ("tril", "triu", "diag", "diagonal", "trace"):
        agree(getattr(jnp, name)(table, k), getattr(np, name)(table, k))
    agree(jnp.diag(np.arange(float(rows)), k), np.diag(np.arange(float(rows)), k))


ENDS = st.integers(-9, 9)


@quick
@given(start=ENDS, stop=ENDS, step=st.integers(-4, 4), n=st.integers(0, 6))
def test_ranges(start, stop, step, n):
    if step:
        assert jnp.arange(start, stop, step).tolist() == [*range(start, stop, step)]
    agree(jnp.linspace(start, stop, n), np.linspace(start, stop, n))
    open_ended = jnp.linspace(start, stop, n, endpoint=False)
    agree(open_ended, np.linspace(start, stop, n, endpoint=False))


@quick
@given(data=st.data())
def test_matrix_products(data):
    shapes = data.draw(
        arrays.mutually_broadcastable_shapes(
            signature=np.matmul.signature, max_side=3, max_dims=2
        )
    )
    left, right = (
        data.draw(arrays.arrays(np.float32, shape, elements=FLOATS))
        for shape in shapes.input_shapes
    )
    agree(jnp.matmul(left, right), np.matmul(left, right), 1e-3)


@quick
@given(x=matrices(min_dims=1), y=st.integers(1, 3))
def test_tensor_products(x, y):
    other = np.arange(float(x.shape[-1] * y)).reshape(x.shape[-1], y)
    agree(jnp.dot(x, other), np.dot(x, other), 1e-3)
    agree(jnp.inner(x, other.T), np.inner(x, other.T), 1e-3)
    agree(jnp.outer(x, other), np.outer(x, other), 1e-3)
    agree(jnp.vdot(x, x), np.vdot(x, x), 1e-3)
    for axes in (0, 1, ((-1,), (0,))):
        agree(jnp.tensordot(x, other, axes), np.tensordot(x, other, axes), 1e-3)


@quick
@given(x=matrices(min_dims=2, min_side=1), keepdims=st.booleans())
def test_norms(x, keepdims):
    for order in (None, 1, -1, math.inf, -math.inf, "fro"):
        ours = jnp.linalg.norm(x, order, (0, -1), keepdims)
        agree(ours, np.linalg.norm(x, order, (0, -1), keepdims), 1e-4)
    for order in (None, 0, 1, 2, 3, math.inf, -math.inf):
        ours = jnp.linalg.norm(x, order, 0, keepdims)
        agree(ours, np.linalg.norm(x, order, 0, keepdims), 1e-4)


@quick
@given(operands=pairs(), condition=st.data())
def test_where(operands, condition):
    shape = np.broadcast_shapes(*(each.shape for each in operands))
    mask = condition.draw(arrays.arrays(bool, shape))
    agree(jnp.where(mask, *operands), np.where(mask, *operands))
    agree(jnp.clip(operands[0], -1, 1), np.clip(operands[0], -1, 1))


NESTED = st.recursive(
    st.integers(-9, 9) | st.floats(-9, 9, width=32),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner),
    max_leaves=6,
)


@quick
@given(nested=NESTED)
def test_lists_become_arrays_as_in_numpy(nested):
    try:
        theirs = np.array(nested, np.float32)
    except ValueError:
        with pytest.raises((ValueError, TypeError)):
            jnp.array(nested, np.float32)
        return
    agree(jnp.array(nested, np.float32), theirs)
    agree(jnp.array(wrapped(nested), np.float32), theirs)


def wrapped(nested):
    """The same nest with arrays for numbers."""
    if isinstance(nested, tuple):
        return [wrapped(item) for item in nested]
    return jnp.array(nested)


@pytest.mark.parametrize("text", cases.calls())
def test_calls_run(text):
    eval(text, dict(NAMES))


@pytest.mark.parametrize("text", cases.BAD)
def test_errors(text):
    kind, *words = cases.BAD[text]
    with pytest.raises(kind) as caught:
        eval(text, dict(NAMES))
    assert type(caught.value) is kind
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("text", cases.LATER)
def test_what_is_announced_says_when_it_comes(text):
    with pytest.raises(NotImplementedError, match="chapter 14"):
        eval(text, dict(NAMES))


@pytest.mark.parametrize("x64", [False, True])
def test_64_bit_types(x64):
    with minijax.enable_x64(x64):
        wide = np.dtype("float64" if x64 else "float32")
        assert jnp.zeros(3).dtype == jnp.array([1.5]).dtype == wide
        assert jnp.sin(1).dtype == jnp.mean(np.arange(3)).dtype == wide
        assert jnp.arange(3).dtype == jnp.argmax(np.ones(3)).dtype
        assert jnp.arange(3).dtype.itemsize == (8 if x64 else 4)


class Quiet(Tracer):
    """A tracer with a type and no numbers."""

    def __init__(self, trace, aval):
        super().__init__(trace)
        self.aval = aval


class Types(Trace):
    """A trace that finds the types of results, and keeps a diary."""

    def __init__(self):
        self.diary = []

    def process_primitive(self, primitive, args, params):
        self.diary.append(primitive.name)
        avals = shape_rules[primitive](*map(typeof, args), **params)
        return [Quiet(self, aval) for aval in avals]


def test_rows_of_tracers_are_joined():
    trace = Types()
    with set_current_trace(trace):
        one = Quiet(trace, typeof(np.float32(1)))
        result = jnp.array([[one, 2], [3, one]])
    assert typeof(result) == typeof(np.zeros((2, 2), np.float32))
    assert trace.diary.count("concatenate") == 3


def test_scalar_types():
    assert jnp.float32 == np.float32 == jnp.dtype("float32")
    assert jnp.zeros(2, jnp.int8).dtype == jnp.int8
    assert repr(jnp.float32) == "<class 'minijax.numpy.float32'>"
    assert jnp.float32.__module__ == "minijax.numpy"
    assert isinstance(jnp.float32(1), jnp.ndarray)
    assert jnp.finfo(jnp.float16).bits == 16
    assert jnp.iinfo(jnp.uint8).max == 255
    if jnp.bfloat16 is not None:
        assert jnp.finfo(jnp.bfloat16).bits == 16


SCALAR_TYPES = "bool int8 uint16 int32 int64 float16 float32 float64 complex64".split()


@pytest.mark.parametrize("name", SCALAR_TYPES)
def test_scalar_types_and_those_of_numpy(name):
    ours, theirs = getattr(jnp, name), np.dtype(name).type
    assert ours == theirs and theirs == ours and ours == np.dtype(name)
    assert not (ours != theirs or ours == name or ours == None)  # noqa: E711
    assert {ours: 1}[theirs] == {theirs: 1}[ours] == 1
    assert np.dtype(name) not in {ours}  # equal, and of another hash, as in JAX
    assert isinstance(theirs(1), ours) and not isinstance(1, ours)
    assert not isinstance(jnp.ones((), jnp.float32), ours)
    assert pickle.loads(pickle.dumps(ours)) is copy.deepcopy(ours) is ours
    others = [getattr(jnp, other) for other in SCALAR_TYPES if other != name]
    assert ours not in others and not any(isinstance(theirs(1), t) for t in others)


def test_every_public_name_has_a_docstring_that_names_its_model():
    public = [getattr(jnp, name) for name in PUBLIC["minijax.numpy"]]
    functions = [f for f in public if hasattr(f, "__code__")]
    assert len(functions) > 150
    assert not [f for f in functions if "Reference:" not in (f.__doc__ or "")]


@pytest.mark.parametrize("mask", [1, np.float32([1, 0, 1]), np.int32([1, 0, 1])])
def test_masks_are_bools(mask):
    x = np.float32([1, 2, 3])
    for fold in (jnp.sum, jnp.mean, jnp.var, jnp.any):
        with pytest.raises(ValueError, match="where must be an array of bools"):
            fold(x, where=mask)
    with pytest.raises(ValueError, match="where must be an array of bools"):
        jnp.max(x, where=mask, initial=0)
    assert float(jnp.sum(x, where=np.array(mask) != 0)) == (4 if np.ndim(mask) else 6)


def test_complex_numbers_are_rounded_in_both_parts():
    result = jnp.rint(np.complex64([1.5 + 2.5j, -0.4j]))
    np.testing.assert_array_equal(result, np.complex64([2 + 2j, 0]))


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_complex_numbers_are_scaled_in_both_parts(name):
    x = np.complex64([0, 1, 100])
    expected = getattr(np, name)(np.float32([1e-45, 1, 100])) + 0j
    expected[0] = complex(-np.inf, 0)
    np.testing.assert_allclose(getattr(jnp, name)(x), expected, rtol=1e-6)
