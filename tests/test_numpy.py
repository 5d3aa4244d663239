"""`minijax.numpy` against NumPy: numbers, shapes, broadcasting; and clear errors."""

import copy
import math
import pickle
import warnings
from array import array
from collections import deque

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax._public import PUBLIC
from minijax.arrays.array import shape_rules, typeof
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


@pytest.mark.parametrize("exponent", [2, np.int8(2), jnp.array(2), jnp.uint8(2)])
def test_an_exponent_with_a_known_value_is_part_of_the_program(exponent):
    assert jnp.power(np.int8(3), exponent).dtype == "int8"
    assert "integer_pow[y=2]" in str(make_jaxpr(lambda x: x**exponent)(3.0))
    assert jit(jnp.power)(np.int8(3), np.int32(2)).dtype == "int32"
    with pytest.raises(TypeError, match="negative"):
        jnp.power(np.int8(3), jnp.array(-2))


def test_powers_of_integers_that_meet_in_a_float():
    with minijax.enable_x64(True):
        x, n = jnp.array([3, -2, 5]), jnp.array([2, 3, 40], "uint64")
        for f in (jnp.power, jit(jnp.power)):
            assert f(x, n).dtype == f(n, x).dtype == np.float64
            np.testing.assert_allclose(f(x, n), [9.0, -8.0, 5.0**40], rtol=1e-14)


@pytest.mark.parametrize("place", [(1, 1), (3, -3), (0, 2), (-2, 0), (3, 4), (0, 0)])
def test_second_derivatives_of_hypot(place):
    x, y = place
    length = max(math.hypot(x, y), 1e-9)
    wanted = np.array([[y * y, -x * y], [-x * y, x * x]]) / length**3
    f = minijax.hessian(lambda v: jnp.hypot(v[0], v[1]))
    for run in (f, jit(f)):
        found = run(jnp.array(place, "float32"))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e-20, 1e-16, 1.0, 1e17, 1e20, 5e37])
def test_derivatives_of_long_and_short_hypotenuses(size):
    x, y = np.float32(3 * size), np.float32(-4 * size)
    for run in (minijax.grad(jnp.hypot, (0, 1)), jit(minijax.grad(jnp.hypot, (0, 1)))):
        np.testing.assert_allclose(run(x, y), [0.6, -0.8], rtol=1e-5)
        np.testing.assert_allclose(run(x, x), [np.sqrt(0.5)] * 2, rtol=1e-6)
    with minijax.enable_x64(True):
        for far in (1e-300, 1e-160, 1e160, 1e300):
            found = minijax.grad(jnp.hypot, (0, 1))(3 * far, -4 * far)
            np.testing.assert_allclose(found, [0.6, -0.8], rtol=1e-14)
    assert jnp.hypot(np.float16(3e4), np.float16(4e4)) == np.float16(5e4)


def test_hypot_of_missing_and_small_numbers():
    xs = jnp.array([0.0, 1e-20, np.inf]), jnp.array([np.nan, 0.0, np.nan])
    for x, y in (xs, xs[::-1]):
        found = jnp.hypot(x, y)
        assert np.isnan(found[0]) and found[1] == 1e-20 and np.isinf(found[2])


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


def test_inner_of_a_number_has_the_preferred_type():
    for dtype in ("int8", "float16", "complex64"):
        result = jnp.inner(2.5, np.arange(3), preferred_element_type=dtype)
        assert result.dtype == dtype
        agree(result, np.asarray(2.5).astype(dtype) * np.arange(3).astype(dtype))


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


def test_norms_of_nothing():
    assert jnp.linalg.norm(np.zeros(0), math.inf) == 0
    assert np.array_equal(jnp.linalg.norm(np.zeros((0, 2)), math.inf, 0), [0, 0])
    assert jnp.linalg.norm(np.zeros((3, 0)), 1) == 0
    with pytest.raises(ValueError, match="no identity"):
        jnp.linalg.norm(np.zeros(0), -math.inf)


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


def test_numbers_of_numpy_are_converted_from_all_their_bits():
    """Not from 32 of them, which are what an array has where x64 is off."""
    whole = np.array([2**40, -(2**31) - 1, 2**62 + 3, 2**32])
    halfway = np.array([1 + 2.0**-11 + 2.0**-40, 1e300, np.nan])
    for numbers, dtype in (
        (whole, "float32"), (whole, "bool"), (whole, "complex64"), (whole, "float64"),
        (whole.astype("uint64"), "float32"), (halfway, "float16"), (halfway, "bool"),
    ):  # fmt: skip
        narrow = {"float64": "float32"}.get(dtype, dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = numbers.astype(narrow)
            for f in (jnp.asarray, jnp.array):
                np.testing.assert_array_equal(f(numbers, dtype), wanted)
                np.testing.assert_array_equal(f(numbers[0], dtype), wanted[0])
                compiled = jit(lambda f=f, x=numbers, dtype=dtype: f(x, dtype))
                np.testing.assert_array_equal(compiled(), wanted)
            filled = jnp.full(numbers.shape, numbers, dtype)
            np.testing.assert_array_equal(filled, wanted)
            like = jnp.full_like(np.zeros(numbers.shape), numbers, dtype)
            np.testing.assert_array_equal(like, wanted)
            assert lax.full((2,), numbers[:1].reshape(()), dtype)[1] == wanted[0]
            rows = jnp.array([jnp.zeros((), narrow), numbers[0]], dtype)
            assert rows[1] == wanted[0] and rows.dtype == narrow
    ends = jnp.array(np.array([1e300, -3e9, np.nan]), "int8")
    assert ends.tolist() == [127, -128, 0]
    assert jnp.float32(np.int64(2**40)) == 2.0**40
    assert jnp.full(2, np.complex64(1j), bool).tolist() == [True, True]


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


class Promising:
    """Something that NumPy or JAX sees as an array."""

    def __init__(self, protocol, value):
        setattr(type(self), protocol, value)


def promising(protocol, value):
    return type("Promising", (Promising,), {})(protocol, value)


TABLE = np.float32([[1, 2], [3, 4]])
SEEN = {
    "array": lambda: array("f", [1, 2]),
    "memoryview": lambda: memoryview(TABLE),
    "bytearray": lambda: bytearray(b"ab"),
    "interface": lambda: promising("__array_interface__", TABLE.__array_interface__),
    "array method": lambda: promising("__array__", lambda *args, **how: TABLE),
    "jax": lambda: promising("__jax_array__", lambda self: jnp.asarray(TABLE)),
    "deque": lambda: deque([1, 2]),
    "deque of arrays": lambda: deque([jnp.ones(2), jnp.ones(2)]),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_as_an_array(name):
    numbers = TABLE if name in ("jax",) else np.asarray(SEEN[name]())
    for made in (jnp.array(SEEN[name]()), jnp.array([SEEN[name]()])[0]):
        np.testing.assert_array_equal(made, numbers)
    assert jnp.array(SEEN[name](), "int8").dtype == "int8"
    if "deque" not in name:
        assert made.dtype == numbers.dtype
        with pytest.raises(ValueError if name == "jax" else TypeError):
            jnp.sin(SEEN[name]())


def test_masked_arrays_come_in_nowhere():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    ones = jnp.ones(2)
    for use in (
        jnp.asarray, jnp.array, jnp.sin, jnp.sum, lax.neg, minijax.device_put,
        lambda m: jnp.array([m, m]), lambda m: jnp.array([m], "int32"),
        lambda m: ones + m, lambda m: m + ones, lambda m: m * ones, lambda m: ones @ m,
        lambda m: jnp.where(True, m, 0), lambda m: jnp.concatenate([ones, m]),
        lambda m: jnp.full((2,), m), lambda m: jnp.astype(m, "int32"),
        lambda m: minijax.device_put({"a": [m]}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="masked arrays are not supported"):
            use(masked)


def test_none_is_no_array():
    for nothing in (None, [None], [1, [None]]):
        with pytest.raises(ValueError, match="None is not a valid value"):
            jnp.array(nothing)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("arange(5, step=2)", [0, 2, 4]),
        ("arange(5, None, 2)", [0, 2, 4]),
        ("arange(5, step=-1)", []),
        ("arange(start=1, stop=7, step=3)", [1, 4]),
        ("arange(3, dtype='int8')", [0, 1, 2]),
        ("full(2, 2**32)", [0, 0]),
        ("full(2, 2**31, 'uint32')", [2**31, 2**31]),
        ("full_like(zeros(1, 'int8'), 2**40 + 7)", [7]),
        ("sum(array([[1, 0], [2, 0]]), 0, bool)", [True, False]),
        ("sum(array([-1.0, 1.0]), dtype=bool, keepdims=True)", [True]),
        ("sum(array([0]), dtype=bool, initial=3)", True),
        ("sum(array([1, 0]), dtype=bool, where=array([False, True]))", False),
        ("prod(array([[1, 0], [2, 3]]), 0, bool)", [True, False]),
        ("cumsum(array([0, 0, 3, 0]), dtype=bool)", [False, False, True, True]),
        ("cumsum(array([0.5, -0.5]), dtype=bool)", [True, True]),
        ("cumprod(array([1, 2, 0, 3]), dtype=bool)", [True, True, False, False]),
        ("eye(2, k=2**33)", [[0, 0], [0, 0]]),
        ("var(array([1 + 1j, 3]), dtype='complex64')", 1.25),
        ("var(array([1 + 1j, 3]), dtype='complex64', ddof=1)", 2.5),
        ("var(array([1, 2, 5]), dtype=int)", 3),
        ("std(array([1 + 1j, 1 - 1j]), dtype='complex64')", 1),
    ],
)
def test_what_jax_computes(text, values):
    result = eval(text, {name: getattr(jnp, name) for name in PUBLIC["minijax.numpy"]})
    np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("arange(None, 5)", TypeError),
        ("argmax(ones((2, 3)), (0, 1))", TypeError),
        ("cumsum(3, ())", TypeError),
        ("eye(3, k=1.0)", ValueError),
        ("eye(3, k=array([1]))", ValueError),
        ("tri(3, k=1.5)", TypeError),
        ("var(array([1j]), dtype='float32')", ValueError),
        ("var(array([1.0]), ddof=1, correction=1)", ValueError),
        ("std(array([1, 2]), dtype=int)", ValueError),
        ("array([1], order='F')", NotImplementedError),
        ("ones(3).view('complex64')", ValueError),
        ("zeros(7, 'uint8').view('int16')", ValueError),
        ("float32(1).view('uint8')", ValueError),
        ("ones(3).view(type=int)", NotImplementedError),
        ("full(2, 1j, 'float32')", TypeError),
        ("result_type()", ValueError),
        ("iinfo(float32)", ValueError),
    ],
)
def test_what_jax_refuses(text, error):
    with pytest.raises(error):
        eval(text, {name: getattr(jnp, name) for name in PUBLIC["minijax.numpy"]})


def test_distances_of_ranges():
    for num, endpoint in ((1, True), (0, True), (0, False)):
        samples, step = jnp.linspace(np.float32([0, 1]), 1, num, endpoint, retstep=True)
        assert samples.shape == (num, 2) and step.shape == () and jnp.isnan(step)
    _, step = jnp.linspace(0, 1, 1, endpoint=False, retstep=True)
    assert step == 1


def test_diagonals_may_be_traced():
    for name in ("eye", "tri"):
        make = getattr(jnp, name)
        expected = [getattr(np, name)(3, 4, k) for k in (-1, 0, 2)]
        mapped = minijax.vmap(lambda k, make=make: make(3, 4, k))(jnp.array([-1, 0, 2]))
        np.testing.assert_array_equal(mapped, expected)
        jitted = minijax.jit(lambda k, make=make: make(3, 4, k))
        np.testing.assert_array_equal(jitted(np.int8(2)), expected[2])
        with pytest.raises((TypeError, ValueError), match="scalar integer"):
            jitted(1.5)


def test_counts_of_more_than_32_bits_wrap_around():
    x = minijax.ShapeDtypeStruct((2**17, 2**16), np.float32)
    assert minijax.eval_shape(lambda x: jnp.mean(x, dtype=int), x).dtype == "int32"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool", "complex64"])
def test_means_of_more_than_32_bits_count(dtype):
    x = minijax.ShapeDtypeStruct((2**17, 2**16), dtype)
    result = {"complex64": "float32", "float16": "float16"}.get(dtype, "float32")
    for fold in (jnp.var, jnp.std):
        assert minijax.eval_shape(fold, x).dtype == result
    mean = minijax.eval_shape(jnp.mean, x)
    assert (mean.shape, mean.dtype) == ((), dtype if dtype == "complex64" else result)


WIDTHS = ["bool", "uint8", "int16", "float16", "int32", "float32", "complex64"]


@pytest.mark.parametrize("new", WIDTHS)
@pytest.mark.parametrize("old", WIDTHS)
def test_views_between_widths(old, new):
    x = np.arange(24).reshape(3, 8).astype(old)
    view = np.ascontiguousarray(x).view("uint8")
    expected = view != 0 if new == "bool" and old != "bool" else view.view(new)
    for way in (lambda x: x.view(new), minijax.jit(lambda x: x.view(new))):
        found = way(jnp.asarray(x))
        assert (found.dtype, found.shape) == (new, expected.shape)
        assert np.asarray(found).tobytes() == expected.tobytes()
    assert jnp.zeros((2, 0), old).view(new).shape == (2, 0)


def test_copies_outlive_what_they_were_made_of():
    x = jnp.ones(2)
    copies = x.astype("float32", copy=True), jnp.astype(x, x.dtype, copy=True)
    assert x.astype("float32") is x
    for other in copies:
        assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        assert not np.shares_memory(other, x)
    minijax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and [float(other[0]) for other in copies] == [1, 1]


def test_questions_about_types():
    assert jnp.iinfo(np.int32).bits == jnp.iinfo(jnp.int32(3)).bits == 32
    assert jnp.iinfo(3).bits == 64 and jnp.iinfo("int8").max == 127
    for x in (np.float32, jnp.float32, np.complex64, "float32", np.float32(1)):
        assert jnp.finfo(x).dtype == "float32"
    assert jnp.iscomplexobj([1j]) and jnp.iscomplexobj([[1], [1j]])
    assert not jnp.isrealobj([1j]) and jnp.isrealobj([1])
    assert not jnp.iscomplexobj(None) and not jnp.iscomplexobj("a")
    assert jnp.isscalar("a") and not jnp.isscalar([1])


def test_rounding_to_decimals_stays_within_the_dtype():
    x = np.array([60000.0, 1.2345, -0.0, np.inf, np.nan, 155.0], "float16")
    with np.errstate(all="ignore"):
        wanted = np.array([60000.0, 1.23, -0.0, np.inf, np.nan, 155.0], "float16")
        for run in (jnp.round, minijax.jit(jnp.round, static_argnums=1)):
            np.testing.assert_array_equal(np.asarray(run(x, 2)), wanted)
            for decimals in (5, 40, 400):
                np.testing.assert_array_equal(np.asarray(run(x, decimals)), x)
    wide = np.array([3e38, 1.5], "float32")
    np.testing.assert_array_equal(np.asarray(jnp.round(wide, 400)), wide)
    with pytest.raises(ValueError, match="bools"):
        jnp.round(np.array([True]))


def test_results_that_are_never_weak():
    integers, bools = jnp.arange(3), jnp.array([True, False])
    for strong in (
        jnp.hypot(integers, 2.0), jnp.hypot(2, bools), jnp.rint(2), jnp.rint(True),
        jnp.power(3, bools),
    ):  # fmt: skip
        assert not strong.weak_type
    assert jnp.hypot(3, 4.0).weak_type
    assert jnp.hypot(3.0, True).weak_type
    assert jnp.rint(2.0).weak_type


def test_an_array_of_a_number_that_is_differentiated():
    """As in JAX: inside of a derivative, too, asarray makes an array of a number."""
    for make in (jnp.asarray, jnp.array, lambda x: jnp.asarray(x, jnp.float32)):
        primal, tangent = minijax.jvp(make, (1.5,), (2.0,))
        assert isinstance(primal, Array) and isinstance(tangent, Array)
        assert isinstance(minijax.vjp(make, 1.5)[0], Array)
        assert minijax.grad(lambda x, make=make: make(x) ** 2)(3.0) == 6.0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "complex64"])
def test_byteswap(dtype):
    x = np.arange(1, 7).reshape(2, 3).astype(dtype)
    swapped = jnp.asarray(x).byteswap()
    assert swapped.dtype == dtype
    assert np.asarray(swapped).tobytes() == x.byteswap().tobytes()
    assert np.array_equal(swapped.byteswap(), x)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_complex_types_are_known_by_their_dtype(dtype):
    for x in (getattr(jnp, dtype), minijax.ShapeDtypeStruct((2,), dtype)):
        assert jnp.iscomplexobj(x) == (dtype == "complex64") != jnp.isrealobj(x)


class _Described:
    shape, dtype = (2,), np.dtype("float64")


@pytest.mark.parametrize("make", [jnp.zeros_like, jnp.ones_like, jnp.empty_like])
def test_what_is_like_an_array_of_numpy_has_our_types(make):
    """Where 64 bits are off: such a state of an optimiser could not enter a loop."""
    like = np.ones(2), np.float64(1), np.ma.ones(2), _Described()
    like += minijax.ShapeDtypeStruct((2,), "float64"), np.ones(2).view(np.matrix)
    assert {str(make(x).dtype) for x in like} == {"float32"}
    assert make(np.ones(2, complex)).dtype == np.complex64
    assert make(np.arange(2, dtype=np.uint64)).dtype == np.uint32
    with minijax.enable_x64():
        assert make(np.ones(2)).dtype == np.float64
        ours = jnp.ones(2)
    assert make(ours).dtype == np.float64
    x, zeros = np.zeros(2), jnp.zeros_like(np.zeros(2))
    step = lambda c: (c[0] + 1, c[1] + 1)  # noqa: E731
    found = lax.while_loop(lambda c: c[0][0] < 3, step, (x, zeros))
    assert [y.tolist() for y in found] == [[3, 3], [3, 3]]
