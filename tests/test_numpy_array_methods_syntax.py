"""Operators, conversions and methods of arrays and tracers."""

import copy
import inspect
import operator
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import errors, grad, jit, vmap
from minijax.core import Array, Trace, Tracer, current_trace, tracer_methods

x, y = jnp.array([3.0, -2.0, 0.5]), jnp.array([2.0, 2.0, -2.0])
i, j = jnp.array([6, 3, 1]), jnp.array([1, 2, 3])
p, q = jnp.array([True, False, True]), jnp.array([True, True, False])

FLOAT = "add sub mul truediv floordiv mod pow eq ne lt le gt ge".split()
INT = "and_ or_ xor lshift rshift".split()


def on_numpy(f, *args):
    """The same function on NumPy's arrays."""
    return f(*map(np.asarray, args))


@pytest.mark.parametrize("name", FLOAT + INT)
def test_operators_agree_with_numpy(name):
    f = getattr(operator, name)
    a, b = (i, j) if name in INT else (x, y)
    np.testing.assert_allclose(f(a, b), on_numpy(f, a, b), rtol=1e-6)
    if name in ("and_", "or_", "xor"):
        np.testing.assert_array_equal(f(p, q), on_numpy(f, p, q))


@pytest.mark.parametrize("name", FLOAT + INT)
def test_numbers_on_either_side(name):
    f = getattr(operator, name)
    a = j if name in INT else y + 3
    for one, two in ((a, 2), (2, a), (a, np.asarray(a)), (np.asarray(a), a)):
        result = f(one, two)
        assert isinstance(result, Array)
        np.testing.assert_allclose(result, on_numpy(f, one, two), rtol=1e-6)


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_operators_with_one_operand(name):
    f = getattr(operator, name)
    a = i if name == "invert" else x
    np.testing.assert_array_equal(f(a), on_numpy(f, a))


def test_matrix_product_and_divmod():
    m = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(m @ x, np.asarray(m) @ np.asarray(x))
    np.testing.assert_array_equal(np.asarray(x) @ m.T, np.asarray(x) @ np.asarray(m.T))
    np.testing.assert_array_equal(divmod(x, 2), on_numpy(divmod, x, np.float32(2)))
    np.testing.assert_array_equal(divmod(7, i), on_numpy(divmod, np.int32(7), i))


class Foreign:
    """An object that knows about arrays what they do not know about it."""

    def __radd__(self, other):
        return "mine"

    def __add__(self, other):
        return "mine too"

    def __gt__(self, other):
        return "less"

    def __rmatmul__(self, other):
        return "product"


def test_foreign_operands_have_their_say():
    assert x + Foreign() == "mine"
    assert Foreign() + x == "mine too"
    assert (x < Foreign()) == "less"
    assert x @ Foreign() == "product"
    with pytest.raises(TypeError, match="unsupported operand"):
        x - Foreign()
    assert (x == Foreign()) is False
    assert (x != None) is True  # noqa: E711


@pytest.mark.parametrize("container", [[1, 2, 3], (1, 2, 3), {1}, {1: 2}])
@pytest.mark.parametrize("sign", [operator.add, operator.eq, operator.lt])
def test_containers_are_refused(container, sign):
    with pytest.raises(TypeError):
        sign(x, container)


def test_conversions():
    assert bool(jnp.array(2.0)) is True
    assert bool(jnp.array([[0]])) is False
    assert float(jnp.array(1)) == 1.0 and isinstance(float(jnp.array(1)), float)
    assert int(jnp.array(-2.7)) == -2
    assert complex(jnp.array(1j)) == 1j
    assert [10, 20, 30][jnp.array(1)] == 20
    assert range(jnp.array(3)) == range(3)
    assert round(jnp.float32(2.6)).dtype == np.int32
    assert f"{jnp.float32(2.6):.1f}" == "2.6"


def test_length_iteration_and_membership():
    assert len(x) == 3
    assert [float(each) for each in x] == [3.0, -2.0, 0.5]
    assert [float(each) for each in reversed(x)] == [0.5, -2.0, 3.0]
    assert 0.5 in x and 7 not in x
    with pytest.raises(ValueError, match="shape \\(\\) in shape \\(2, 3\\)"):
        operator.contains(jnp.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match="shape \\(3,\\) in shape \\(3,\\)"):
        operator.contains(x, x)
    with pytest.raises(TypeError, match="in requires .* got <class 'str'>"):
        operator.contains(x, "a")


class Blind(Tracer):
    """A tracer without numbers, and without a method that says so."""

    def __init__(self, shape=(), dtype="float32"):
        super().__init__(Trace())
        self.aval = jnp.zeros(shape, dtype).aval


class Silent(Blind):
    """A tracer that says that it has no numbers, and where it comes from."""

    def concrete(self):
        return None

    def provenance(self):
        return "It was made for a test."


class Seeing(Blind):
    """A tracer with a number."""

    def concrete(self):
        return jnp.zeros((), self.dtype) + 1


WANTED = [
    (bool, errors.TracerBoolConversionError, "jnp.where"),
    (float, errors.ConcretizationTypeError, "astype"),
    (int, errors.ConcretizationTypeError, "int"),
    (complex, errors.ConcretizationTypeError, "astype"),
    (lambda a: a.item(), errors.ConcretizationTypeError, "item"),
    (lambda a: a.tolist(), errors.ConcretizationTypeError, "tolist"),
    (np.asarray, errors.TracerArrayConversionError, "minijax.numpy"),
]


@pytest.mark.parametrize(("wish", "error", "word"), WANTED)
@pytest.mark.parametrize("kind", [Blind, Silent])
def test_tracers_without_numbers(wish, error, word, kind):
    with pytest.raises(error, match=word) as caught:
        wish(kind())
    if error is not errors.TracerArrayConversionError:
        assert "float32[]" in str(caught.value)
        assert ("made for a test" in str(caught.value)) == (kind is Silent)


def test_tracers_as_integers():
    with pytest.raises(errors.TracerIntegerConversionError, match="index"):
        range(Silent((), "int32"))
    with pytest.raises(IndexError, match="must be static integers"):
        x[Silent((), "int32") :]
    with pytest.raises(TypeError, match="integer scalar"):
        range(Silent())
    with pytest.raises(ValueError, match="ambiguous"):
        bool(Silent((3,)))


def test_tracers_with_numbers_answer():
    assert bool(Seeing()) is True
    assert int(Seeing()) == Seeing().item() == 1
    with pytest.raises(errors.ConcretizationTypeError, match="astype"):
        float(Seeing())
    assert range(Seeing((), "int32")) == range(1)
    assert float(x[Seeing((), "int32")]) == -2.0


def test_arrays_are_immutable_unhashable_and_copyable():
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    np.testing.assert_array_equal(copy.deepcopy(x), x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), x)


METHODS = """
    all any argmax argmin astype clip conj conjugate copy cumprod cumsum diagonal dot
    flatten item max mean min prod ptp ravel repeat reshape round squeeze std sum
    swapaxes tolist trace transpose var view T mT real imag at
""".split()


@pytest.mark.parametrize("name", METHODS)
def test_method_is_there_for_arrays_and_tracers(name):
    assert name in tracer_methods
    assert hasattr(Array, name)
    described = (
        tracer_methods[name].fget
        if isinstance(tracer_methods[name], property)
        else tracer_methods[name]
    )
    assert described.__doc__


def test_methods_that_differ_from_functions():
    m = jnp.arange(6.0).reshape(2, 3)
    assert m.reshape(3, 2).shape == m.reshape((3, 2)).shape == (3, 2)
    assert m.reshape(-1).shape == m.flatten().shape == (6,)
    assert m.transpose(1, 0).shape == m.transpose((1, 0)).shape == m.T.shape == (3, 2)
    assert m.transpose().shape == m.transpose(None).shape == (3, 2)
    assert m.astype(int).dtype == np.int32 and m.astype(None).dtype == np.float32
    assert m.astype(int, copy=True).dtype == np.int32
    assert m.to_device(m.device).committed and m.to_device(None) is m
    assert m.to_device(m.device, stream=None).committed
    with pytest.raises(NotImplementedError, match="stream argument"):
        m.to_device(m.device, stream=1)
    asked = [*inspect.signature(m.__dlpack__).parameters]
    assert asked == ["stream", "max_version", "dl_device", "copy"]
    assert m.item(1, 2) == m.item(5) == 5.0
    assert m.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert m.tobytes() == np.asarray(m).tobytes()


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16", "float32", "uint32"])
def test_views_read_bits(dtype):
    bits = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(jnp.array(bits).view(dtype), bits.view(dtype))
    small = np.arange(8, dtype=np.uint8)
    np.testing.assert_array_equal(jnp.array(small).view(dtype), small.view(dtype))


def test_evaluation_left_no_trace_behind():
    assert type(current_trace()).__name__ == "EvalTrace"


class Scaled(NamedTuple):
    a: object

    def _with(self, other):
        return Scaled(other)

    __radd__ = __rmul__ = __rpow__ = __rmatmul__ = __eq__ = __gt__ = _with
    __hash__ = None


class Rows(list):
    __radd__ = __rmul__ = __rmatmul__ = __eq__ = __gt__ = lambda self, other: other


OPERATORS = [operator.add, operator.mul, operator.matmul, operator.eq, operator.lt]


@pytest.mark.parametrize("operate", OPERATORS)
def test_what_is_derived_from_a_container_may_have_operators(operate):
    x = jnp.ones(2)
    assert operate(x, Scaled(1)).a is x is operate(x, Rows())
    assert jit(lambda y: operate(y, Scaled(1)).a)(x) is not None
    for container in ([1, 2], (1, 2), {1}, {}):
        with pytest.raises(TypeError, match="unsupported operand types for"):
            operate(x, container)


def test_without_operators_they_are_no_operands():
    class Plain(NamedTuple):
        a: object

    with pytest.raises(TypeError, match="unsupported operand"):
        jnp.ones(2) + Plain(1)
    assert (jnp.ones(2) == Plain(1)) is False


@pytest.mark.parametrize("name", ["tolist", "tobytes"])
@pytest.mark.parametrize("transform", [grad, jit, vmap])
def test_numbers_of_tracers_are_not_handed_out(name, transform):
    """Also where they are known, as in `grad`: the list would have no derivative."""
    with pytest.raises(errors.ConcretizationTypeError, match="would lose|concrete"):
        transform(lambda x: (getattr(x, name)(), x.sum())[1])(jnp.ones(2))
