"""Products of arrays, against `numpy.einsum`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
from minijax import lax
from tests import array_cases as cases

SIZES = dict(zip("abcdefgh", (2, 3, 1, 4, 2, 0, 3, 2)))


@given(st.data())
def test_dot_general(data):
    letters = data.draw(st.permutations("abcdefgh"))
    cuts = sorted(data.draw(st.lists(st.integers(0, 6), min_size=4, max_size=4)))
    batch, summed = letters[: min(cuts[0], 2)], letters[2 : 2 + min(cuts[1], 2)]
    left, right = letters[4 : 4 + cuts[2] % 3], letters[6 : 6 + cuts[3] % 3]
    lhs = data.draw(st.permutations([*batch, *summed, *left]))
    rhs = data.draw(st.permutations([*batch, *summed, *right]))
    numbers = [
        tuple(tuple(side.index(c) for c in names) for side in (lhs, rhs))
        for names in (summed, batch)
    ]
    x, y = (cases.numbers([SIZES[c] for c in side], "int32") for side in (lhs, rhs))
    spec = f"{''.join(lhs)},{''.join(rhs)}->{''.join([*batch, *ordered(lhs, left)])}"
    spec += "".join(ordered(rhs, right))
    result = lax.dot_general(x, y, numbers)
    np.testing.assert_array_equal(np.asarray(result), np.einsum(spec, x, y))


def ordered(side, free):
    return [letter for letter in side if letter in free]


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_every_dtype(dtype):
    x = cases.numbers((2, 3), dtype)
    result = lax.dot_general(x, x, (((1,), (1,)), ((), ())))
    assert result.shape == (2, 2)
    assert np.asarray(result).dtype == result.dtype


def test_dtypes_of_results():
    x, i = np.float32([1, 2]), np.int32([1, 2])
    numbers = (((0,), (0,)), ((), ()))
    assert lax.dot_general(x, i, numbers).dtype == np.float32
    assert (
        lax.dot_general(x, x, numbers, preferred_element_type="float16").dtype == "f2"
    )
    small = np.uint8([100, 100])
    assert int(np.asarray(lax.dot_general(small, small, numbers))) == 20000 % 256
    wide = lax.dot_general(small, small, numbers, preferred_element_type=np.int32)
    assert int(np.asarray(wide)) == 20000
    assert lax.dot_general(2.0, 3.0, (((), ()), ((), ()))).weak_type


def test_half_precision_is_added_up_in_32_bits():
    ones = np.ones(3000, np.float16)
    assert float(np.asarray(lax.dot(ones, ones))) == 3000


def test_dot():
    x, v = cases.numbers((2, 3), "float32"), cases.numbers((3,), "float32")
    np.testing.assert_allclose(np.asarray(lax.dot(x, v)), x @ v, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lax.dot(v, v)), v @ v, rtol=1e-6)
    stack = cases.numbers((4, 2, 3), "float32")
    product = lax.batch_matmul(stack, stack.transpose(0, 2, 1))
    np.testing.assert_allclose(
        np.asarray(product), stack @ stack.transpose(0, 2, 1), rtol=1e-5
    )


def test_precision_is_accepted():
    x = np.float32([1, 2])
    for precision in (None, "highest", lax.Precision.HIGH, ("default", "high")):
        assert float(np.asarray(lax.dot(x, x, precision=precision))) == 5
    with pytest.raises(ValueError, match="foo"):
        lax.dot(x, x, precision="foo")


@pytest.mark.parametrize(
    ("words", "contracting", "batch"),
    [
        (
            r"contracting .* \(3,\) and \(2,\): axes \(1,\) of lhs",
            ((1,), (0,)),
            ((), ()),
        ),
        (r"batch .* \(2,\) and \(3,\)", ((), ()), ((0,), (1,))),
        (r"batch .* \(2,\) and \(\)", ((), (0,)), ((0,), ())),
        ("of lhs must be different axes", ((1,), (1,)), ((1,), (0,))),
        ("of rhs must be different axes", ((1,), (2,)), ((), ())),
    ],
)
def test_mistakes(words, contracting, batch):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match=words):
        lax.dot_general(x, x, (contracting, batch))


def test_dot_refuses_what_it_cannot_tell():
    x = np.ones((2, 3), np.float32)
    for args in [(x, x), (1.0, x)]:
        with pytest.raises(ValueError, match="dot_general"):
            lax.dot(*args)
    with pytest.raises(ValueError, match="equal rank"):
        lax.batch_matmul(x, x[0])


HALVES = np.array([1.5, 0.5, -0.75, 2.5])  # their squares add up to 9.3125
PRODUCTS = [
    lambda lax, jnp, x, to: lax.dot(x, x, preferred_element_type=to),
    lambda lax, jnp, x, to: jnp.matmul(x, x, preferred_element_type=to),
    lambda lax, jnp, x, to: jnp.einsum("i,i", x, x, preferred_element_type=to),
]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("backend", ["eager", "llvm", "python"])
def test_a_result_that_loses_a_part_is_converted_last(product, backend):
    def run(x, to):
        f = lambda x: product(lax, minijax.numpy, x, to)  # noqa: E731
        return (f if backend == "eager" else minijax.jit(f, backend=backend))(x)

    for own in ("float16", "float32"):
        for to in ("int8", "uint8", "int32", "uint32"):
            found = run(HALVES.astype(own), to)
            assert found.dtype == to and found == 9
        assert run(np.array([0.5, -0.25], own), "bool") == np.True_
    turned = (HALVES * (1 + 2j)).astype("complex64")  # its square is -3 + 4j times
    for to, wanted in (("float32", -3 * 9.3125), ("int32", -27)):
        found = run(turned, to)
        assert found.dtype == to and found == wanted
    slope = minijax.grad(lambda x: run(x * (1 + 2j), "float32"))(np.float32(HALVES))
    np.testing.assert_allclose(slope, -6 * HALVES)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(
    "own, to",
    [("complex64", "int8"), ("complex64", "float16"), ("int8", "bool")],
)
def test_a_result_that_is_narrower_is_refused(product, own, to):
    with pytest.raises(TypeError, match="must not be narrower"):
        product(lax, minijax.numpy, np.ones(2, own), to)


@pytest.mark.parametrize("own", ["int8", "int32", "bool", "uint8"])
def test_bfloat16_with_an_integer(own):
    half = pytest.importorskip("ml_dtypes").bfloat16
    x, y = np.array([[1, 0, 3], [2, 5, 1]]).astype(own), np.array([1.5, 2, -1], half)
    numbers = (((1,), (0,)), ((), ()))
    for backend in (None, "llvm", "python"):
        f = lambda x, y: lax.dot_general(x, y, numbers)  # noqa: E731
        found = (minijax.jit(f, backend=backend) if backend else f)(x, y)
        assert found.dtype == half
        assert np.array_equal(found, x.astype(float) @ y.astype(float))


def test_products_of_64_bits_keep_their_digits_without_x64():
    with minijax.enable_x64():
        x = minijax.numpy.asarray([1.0, 1e-9])
    dot = minijax.numpy.dot
    for product in (x @ x, dot(x, x), minijax.jit(dot)(x, x)):
        assert product.dtype == np.float64
    with minijax.enable_x64():
        big = minijax.numpy.asarray([2**40, 1])
    assert int(big @ big) == 2**80 % 2**64 + 1
    narrow = minijax.lax.dot(x, x, preferred_element_type=float)
    assert narrow.dtype == np.float32
