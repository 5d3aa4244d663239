"""The friendly layer: one dtype, one rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

import minijax as jax
import minijax.numpy as jnp
from minijax import enable_x64, lax
from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.numerics import broadcast_shapes
from minijax.lax import reductions as promotion
from minijax.lax.reductions import (
    as_array_operand,
    check_arraylike,
    common_dtype_and_weak_type,
    is_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)

WEAK, HALF = as_array_impl(2.0), as_array_impl(np.float16([1, 2]))


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((1, 2), ("int32", True)),
        ((1, 2.0), ("float32", True)),
        ((True, 1), ("int32", True)),
        ((True, True), ("bool", False)),
        ((HALF, 1.0), ("float16", False)),
        ((HALF, WEAK), ("float16", False)),
        ((HALF, np.float64(1)), ("float32", False)),
        ((HALF, np.int32(1)), ("float16", False)),
        ((HALF, 1j), ("complex64", False)),
        ((np.int8(1), 1.5), ("float32", True)),
        ((np.int8(1), np.uint8(1)), ("int16", False)),
        ((np.uint32(1), np.int32(1)), ("int32", False)),
    ],
)
def test_common_type(operands, expected):
    dtype, weak = common_dtype_and_weak_type(*operands)
    assert (dtype.name, weak) == expected
    assert common_dtype_and_weak_type(*operands[::-1]) == (dtype, weak)


def test_python_numbers_become_literals():
    array, number = promote_dtypes(HALF, 2)
    assert array is HALF and isinstance(number, np.ndarray) and number == 2
    assert number.dtype == np.float16 and number.shape == ()
    weak, number = promote_dtypes(WEAK, 2)
    assert weak is WEAK and type(number) is float


def test_numbers_that_do_not_fit_wrap_around_or_fail():
    small, number = promote_dtypes(np.uint8(3), 300)
    assert int(number) == 44 and number.dtype == np.uint8
    with pytest.raises(OverflowError):
        promote_dtypes(np.int32(1), 2**40)
    assert np.isinf(promote_dtypes(HALF, 1e10)[1])


def test_inexact_and_numeric():
    assert typeof(promote_dtypes_inexact(np.int8(1))[0]).dtype == np.float32
    assert typeof(promote_dtypes_inexact(HALF)[0]).dtype == np.float16
    [weak] = promote_dtypes_inexact(1)
    assert type(weak) is float
    assert typeof(promote_dtypes_numeric(True)[0]).dtype == np.int32
    assert typeof(promote_dtypes_numeric(np.uint8(1))[0]).dtype == np.uint8


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4))
def test_shapes_broadcast_as_numpy_s(shapes):
    arrays = [np.ones(shape, np.float32) for shape in shapes.input_shapes]
    assert broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    assert lax.add(*promote_shapes(*arrays)).shape == shapes.result_shape


def test_shapes_that_do_not_meet():
    with pytest.raises(ValueError, match=r"shapes=\[\(2,\), \(3,\)\]"):
        broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError):
        promote_shapes(np.ones((2, 3)), np.ones(2))


def test_scalars_keep_their_rank():
    matrix, number = promote_shapes(np.ones((2, 3)), 1.0)
    assert number == 1.0 and matrix.shape == (2, 3)


def test_what_counts_as_an_array():
    assert all(map(is_arraylike, (1, True, np.int8(1), np.ones(2), HALF)))
    assert not any(map(is_arraylike, ([1], "a", None, object())))
    check_arraylike("sin", 1.0, HALF)
    with pytest.raises(TypeError, match=r"sin requires .*list.* at position 1"):
        check_arraylike("sin", 1.0, [2.0])
    assert as_array_operand(HALF) is HALF and repr(as_array_operand(1)) == repr(
        as_array_impl(1)
    )


def test_kept_answers_know_the_switch():
    for wide, expected in [(False, "float32"), (True, "float64"), (False, "float32")]:
        with enable_x64(wide):
            assert common_dtype_and_weak_type(np.int32(1), 1.5)[0] == expected


def _operands():
    """Operands of all kinds, twice each."""
    kinds = "bool int8 uint32 int32 float16 bfloat16 float32 complex64".split()
    arrays = [jnp.zeros(shape, kind) for kind in kinds for shape in ((), (3,), (1, 3))]
    weak = [jnp.asarray(x) for x in (1, 1.5, 1j)] + [jnp.asarray(1.5) < 2]
    numbers = [True, 1, 1.5, 1j, np.float32(1), np.ones(3, "float32")]
    return [*arrays, *weak, jnp.asarray(2.0) > 1, *numbers]


@pytest.mark.parametrize("name", ["promote_dtypes", "promote_dtypes_inexact"])
def test_what_is_settled_is_not_promoted(name):
    promote, settled = getattr(promotion, name), 0
    for x in _operands():
        for y in _operands():
            if promotion.is_promoted(promote, x, y):
                settled += 1
                left, right = promotion.promote_shapes(*promote(x, y))
                assert left is x and right is y
            elif isinstance(x, jax.Array) and isinstance(y, jax.Array):
                same = x.aval == y.aval and (x.aval.dtype.kind != "b")
                inexact = jnp.issubdtype(x.dtype, jnp.inexact)
                assert not same or (name != "promote_dtypes" and not inexact)
    assert settled > 10
    assert not promotion.is_promoted(promotion.promote_dtypes_numeric, x, x)


@pytest.mark.parametrize("name", ["promote_dtypes", "promote_dtypes_inexact"])
def test_a_number_beside_floats_is_promoted_as_always(name):
    promote, quick = getattr(promotion, name), 0
    numbers = [0, -0.0, 2, 1.5, float("inf"), float("nan"), 1e300, -7]
    for x in _operands():
        for y in numbers:
            for pair in (x, y), (y, x):
                found = promotion.beside_number(promote, *pair)
                if found is None:
                    continue
                quick += 1
                for ours, usual in zip(found, promote(*pair), strict=True):
                    assert typeof(ours) == typeof(usual)
                    assert np.asarray(ours).tobytes() == np.asarray(usual).tobytes()
    assert quick > 100
    with enable_x64():
        wide = jnp.ones(3)
    # Outside, where 64 bits are off, it's left to the promotion.
    assert promotion.beside_number(promote, wide, 1.5) is None
    assert promotion.beside_number(promotion.promote_dtypes_numeric, 1.5, x) is None


def test_settled_operands_are_refused_and_strict_as_others():
    keys = jax.random.key(0)
    with pytest.raises(TypeError, match="add"):
        keys + keys
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        x = jnp.ones(3)
        assert (x + x).tolist() == [2, 2, 2]
    assert jax.make_jaxpr(lambda x, y: x + y)(x, x).eqns[0].primitive.name == "add"
    weak = jnp.asarray(1.5)
    assert (weak * weak).aval.weak_type and not (x + weak).aval.weak_type
