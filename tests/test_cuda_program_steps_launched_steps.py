"""Products of matrices by tiles, whatever their sizes, strides and types."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.cuda.device import lower_for_gpu
from minijax.cuda.program_steps import DeviceMatmul, matmul_launch, matrix_index_expr
from minijax.kernels.builder import Buffer, contiguous_view, transpose_view
from minijax.matmul.lowering import Matmul
from minijax_book import emulator

needs_compiler = pytest.mark.skipif(
    not emulator.is_there(), reason="no C++ compiler here"
)
FLOAT = np.dtype("float32")


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64"])
@pytest.mark.parametrize(
    ("spec", "lhs", "rhs"),
    [
        ("ij,jk", (33, 40), (40, 17)),
        ("ji,jk", (40, 33), (40, 17)),
        ("ij,kj", (16, 64), (32, 64)),
        ("aij,ajk", (3, 20, 37), (3, 37, 18)),
        ("abij,abkj", (2, 2, 20, 37), (2, 2, 18, 37)),
    ],
)
def test_products_are_those_of_the_host(spec, lhs, rhs, dtype, gpu):
    rng = np.random.default_rng(7)
    operands = [jnp.asarray(rng.integers(-4, 5, shape), dtype) for shape in (lhs, rhs)]
    f = minijax.jit(lambda x, y: jnp.einsum(spec, x, y))
    product = [type(step) for step in lower_for_gpu(make_jaxpr(f)(*operands)).walk()]
    assert DeviceMatmul in product and Matmul not in product
    found = f(*minijax.device_put(operands, gpu))
    assert found.device is gpu
    expected = f(*operands)
    np.testing.assert_array_equal(*[np.asarray(x) for x in (found, expected)])


@needs_compiler
def test_integers_wrap(gpu):
    x = minijax.device_put(jnp.full((20, 20), 2**30, jnp.int32), gpu)
    assert (np.asarray(x @ x) == 0).all()
    assert (np.asarray((x + 1) @ (x * 0 + 1)) == (20 * (2**30 + 1) + 2**31) % 2**32 - 2**31).all()  # fmt: skip  # noqa: E501


@needs_compiler
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_short_integers_are_multiplied_in_pairs(dtype, gpu):
    ends, rng = np.iinfo(dtype), np.random.default_rng(7)
    choice = np.array([ends.min, ends.max, 1, 0, 7], dtype)
    pair = [jnp.asarray(rng.choice(choice, shape)) for shape in ((33, 41), (41, 17))]
    for preferred in ("int32", None):
        f = minijax.jit(lambda x, y, p=preferred: jnp.matmul(x, y, preferred_element_type=p))  # fmt: skip  # noqa: E501
        found, expected = (
            f(*minijax.device_put(pair, gpu)),
            jnp.matmul(*pair, preferred_element_type=preferred),
        )
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_one_block_makes_a_tile_of_the_result():
    lhs = contiguous_view(Buffer("a", FLOAT, 3 * 20 * 37), FLOAT, (3, 20, 37))
    rhs = contiguous_view(Buffer("b", FLOAT, 3 * 37 * 18), FLOAT, (3, 37, 18))
    out = contiguous_view(Buffer("c", FLOAT, 3 * 20 * 18), FLOAT, (3, 20, 18))
    step = DeviceMatmul(lhs, rhs, out)
    launch = matmul_launch(step)
    assert (launch.blocks, launch.threads) == (3 * 1 * 1, 256) and step.workspace == 0
    assert launch.label == matmul_launch(step).label
    other = DeviceMatmul(lhs, transpose_view(rhs, (0, 1, 2)), out)
    assert matmul_launch(other).text == launch.text
    place = matrix_index_expr(out, "r", "c").replace("LL", "")
    for b, r, c in [(0, 0, 0), (2, 19, 17), (1, 3, 5)]:
        at = eval(place, {"r": r, "c": c, "batch": b})
        assert at == b * 360 + r * 18 + c


def test_products_in_loops_are_those_of_a_card():
    f = lambda x: minijax.lax.fori_loop(0, 3, lambda i, y: y @ x, x)  # noqa: E731
    steps = [*lower_for_gpu(make_jaxpr(f)(np.ones((40, 40), np.float32))).walk()]
    assert DeviceMatmul in map(type, steps) and Matmul not in map(type, steps)
