"""Running totals as loops, beside NumPy."""

from functools import partial
from itertools import product

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.cpu_backend.program_codegen import ScanStep
from minijax.kernels.lowering import Evaluate, lower
from tests.cpu_cases import compare

TOTALS = {
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
}
KINDS = ["float32", "int32", "uint8", "float16", "complex64"]


@pytest.mark.parametrize("backend", ["kernels", "cpu"])
@pytest.mark.parametrize("name", TOTALS)
def test_all_axes_and_dtypes(name, backend):
    rng = np.random.default_rng(0)
    shapes = [(5,), (0,), (1,), (3, 4), (4, 0), (2, 3, 4)]
    cases = [(*pair, rev) for pair in product(KINDS, shapes) for rev in (False, True)]
    for kind, shape, reverse in cases:
        x = (rng.normal(size=shape) * 5).astype(kind)
        for axis in range(len(shape)):
            f = partial(TOTALS[name], axis=axis, reverse=reverse)
            assert not compare(backend, f"{name} {kind} {shape} {axis}", f, [x])


def test_nan_stays():
    x = np.array([1.0, np.nan, 3.0, -np.inf], "float32")
    found = jit(lambda x: lax.cummax(x, 0), backend="cpu")(x)
    np.testing.assert_array_equal(found, np.maximum.accumulate(x))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", TOTALS)
def test_it_is_one_kernel_or_a_loop(name, axis):
    total = partial(TOTALS[name], axis=axis)
    program = lower(make_jaxpr(total)(jnp.ones((3, 4))))
    if name == "cumlogsumexp":
        [loop] = [step for step in program.steps if isinstance(step, ScanStep)]
        assert loop.length == (3, 4)[axis]
        assert not [step for step in program.walk() if isinstance(step, Evaluate)]
    else:
        [launch] = program.steps
        assert [node.op for node in launch.kernel.nodes] == (
            ["load", "convert", "running", "convert"]
            if name in ("cumsum", "cumprod")
            else ["load", "running"]
        )


@pytest.mark.parametrize("shape", [(70, 33), (33, 70), (2, 40, 37), (5000,)])
@pytest.mark.parametrize("name", [*TOTALS][:4])
def test_vectors_lie_across(name, shape):
    x = np.random.default_rng(1).integers(-2, 3, shape).astype("float32")
    for axis in range(len(shape)):
        for reverse in (False, True):
            f = partial(TOTALS[name], axis=axis, reverse=reverse)
            assert not compare("cpu", f"{name} {shape} {axis} {reverse}", f, [x])


def test_logarithms_of_sums():
    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf, 1, -inf], [inf, 1, inf, -inf], [1000, 999, -1000, 1001]]
    rows += [[1, nan, 1, 1], [-inf, inf, nan, 0], [0, 0, 0, 0]]
    x = np.array(rows, "float32")
    found = jit(lambda x: lax.cumlogsumexp(x, 1), backend="cpu")(x)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(x, 1)
    np.testing.assert_allclose(found, expected, rtol=3e-7)


LONG = {
    "cumsum": (np.full(10**6, 0.1), np.cumsum),
    "cumprod": (np.full(10**6, 1.000001), np.cumprod),
    "cumlogsumexp": (np.zeros(10**6), np.logaddexp.accumulate),
}


@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize("backend", [None, "python", "kernels", "cpu"])
@pytest.mark.parametrize("name", LONG)
def test_a_long_total_keeps_its_digits(name, backend, kind):
    if (name, kind) == ("cumlogsumexp", "complex64"):
        pytest.skip("tests/test_lax_reductions.py has it.")
    if (name, backend) == ("cumlogsumexp", "kernels"):
        pytest.skip("A million turns of a loop, one by one.")
    numbers, accumulate = LONG[name]
    x = numbers.astype(kind)
    expected = accumulate(x, dtype=np.result_type(x, np.float64)).astype(kind)
    for reverse in (False, True):
        f = partial(TOTALS[name], reverse=reverse)
        found = np.asarray((jit(f, backend=backend) if backend else f)(x))
        found = found[::-1] if reverse else found
        np.testing.assert_allclose(found, expected, rtol=3e-7)
