"""Convolutions and folds of windows: random ones beside loops, and their columns."""

from itertools import product

import numpy as np
import pytest

import minijax
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax import numpy as jnp
from minijax.jitting.compilation import compile_cached
from minijax.kernels.lowering import KernelProgram
from minijax.test_util import check_grads
from minijax.windows.convolution_tiles import TapProduct
from tests.commands import some
from tests.window_cases import by_loops, convolution, differences, pool_differences

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(16))
def test_random_windows(seed):
    assert not [*differences(seed), *pool_differences(seed)]


def test_tiles_are_used_and_interpreted():
    """A step by NumPy, and by machine code, for the value and both gradients."""
    x, w = normal(2, 9, 11, 24), normal(3, 3, 24, 40)
    how = {"padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}

    def call(x, w):
        return lax.conv_general_dilated(x, w, (2, 1), **how)

    def gradients(x, w):
        return grad(lambda x, w: (call(x, w) ** 2).sum(), (0, 1))(x, w)

    closed = make_jaxpr(gradients)(x, w)
    steps = [*compile_cached(closed, "cpu").lowered.walk()]
    assert sum(isinstance(step, TapProduct) for step in steps) == 4  # two phases
    args = minijax.numpy.asarray(x), minijax.numpy.asarray(w)
    for run in (KernelProgram(closed), jit(gradients)):
        found = run(*args)
        for ours, wanted in zip(found, gradients(x, w)):
            assert np.allclose(ours, wanted, rtol=1e-3, atol=1e-3)


SPACES = (1,), (1, 8), (8, 1), (1, 1), (1, 2, 1), (3, 1, 1)
HOW = {}, {"lhs_dilation": 2}, {"rhs_dilation": 2}, {"window_strides": 2}


@pytest.mark.parametrize("space, how", some(product(SPACES, HOW), 2))
def test_an_axis_of_one_element_has_zeros_beside_it(space, how):
    """Products of the machine, since there are enough of them, beside eager folds."""
    x = RNG.integers(-2, 3, (32, 16, *space)).astype("f")
    w = RNG.integers(-2, 3, (24, 16, *[3] * len(space))).astype("f")
    how = {key: [number] * len(space) for key, number in how.items()}
    strides = how.pop("window_strides", [1] * len(space))
    around = [(2, 2)] * len(space)

    def call(x, w):
        return lax.conv_general_dilated(x, w, strides, around, **how)

    def slopes(x, w):
        return grad(lambda x, w: (call(x, w) * 2.0).sum(), (0, 1))(x, w)

    steps = [*compile_cached(make_jaxpr(call)(x, w), "cpu").lowered.walk()]
    assert any(isinstance(step, TapProduct) for step in steps)
    for f in (call, slopes):
        for ours, wanted in zip(jit(f)(x, w), f(*map(jnp.asarray, (x, w)))):
            assert np.array_equal(ours, wanted)


def test_a_convolution_without_features():
    x, w = jnp.ones((2, 3, 9)), jnp.ones((0, 3, 3))
    for call in (lax.conv, jit(lax.conv, static_argnums=(2, 3))):
        assert call(x, w, (1,), "VALID").shape == (2, 0, 7)


@pytest.mark.parametrize("name", ["plain", "avx2", "avx512"])
def test_tiles_for_other_processors(name):
    """The texts of tiles are made for each width of vectors."""
    from minijax.llvm.instructions import FunctionBuilder
    from minijax.llvm.targets import TARGETS
    from minijax.windows.convolution_tiles import (
        tap_tile,
        units_at_once,
        write_tap_tile,
    )

    target, dtype = TARGETS[name], np.dtype(np.float32)
    tile = tap_tile(dtype, target, units_at_once(dtype, target))
    assert tile.columns * dtype.itemsize == 64 * units_at_once(dtype, target)
    f = FunctionBuilder()
    write_tap_tile(f, tile)
    assert sum("fmul" in line for line in "\n".join(f.lines).split("\n")) == len(
        tile.places
    )


def test_tiles_within_loops():
    x, w = normal(1, 16, 12), normal(16, 16, 3)

    def often(x):
        def turn(x, _):
            y = lax.conv_general_dilated(x, 0.1 * w, (1,), "SAME")
            return y, y.sum()

        return lax.scan(turn, x, None, length=3)

    assert np.allclose(jit(often)(x)[0], often(x)[0], atol=1e-4)
    found = jit(grad(lambda x: often(x)[1].sum()))(x)
    assert np.allclose(found, grad(lambda x: often(x)[1].sum())(x), atol=1e-3)


def test_halves_are_summed_in_floats():
    x, w = np.full((1, 64, 20), 0.1, "f2"), np.full((32, 64, 5), 0.1, "f2")
    found = jit(lambda x, w: lax.conv(x, w, (1,), "VALID"))(x, w)
    assert found.dtype == np.float16 and np.allclose(found, 3.2, rtol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_gradients(seed):
    x, w, how = convolution(np.random.default_rng(seed + 50), "float32")
    x, w = x + 0.5 * normal(*x.shape), w + 0.5 * normal(*w.shape)

    def call(x, w):
        return lax.conv_general_dilated(x, w, **how)

    check_grads(call, (x, w), order=2, modes=["fwd", "rev"], atol=3e-2, rtol=3e-2)


@pytest.mark.parametrize("fold", ["add", "max", "min", "mul"])
def test_gradients_of_folds(fold):
    init = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}[fold]
    x = RNG.permutation(30).reshape(5, 6).astype(np.float32) / 10

    def call(x):
        args = (2, 3), (2, 1), "SAME"
        return lax.reduce_window(x, init, getattr(lax, fold), *args)

    how = {"order": 2, "modes": ["fwd", "rev"], "atol": 3e-2, "rtol": 3e-2}
    check_grads(call, (x,), eps=1e-3, **how)
    assert np.allclose(jit(vmap(call))(np.stack([x, 2 * x]))[0], call(x))


def test_initial_values_may_be_mapped():
    def call(x, init):
        return lax.reduce_window(x, init, lax.max, (2,), (1,), "SAME")

    x, inits = normal(4, 6), np.array([-9.0, 0.0, 0.5, 9.0], np.float32)
    found = vmap(call)(x, inits)
    assert np.allclose(found, np.stack([call(*pair) for pair in zip(x, inits)]))


def test_folds_close_over_no_tracers():
    def call(x, y):
        return lax.reduce_window(x, 0.0, lambda a, b: a + b * y, (2,))

    with pytest.raises(NotImplementedError, match="value of the program around it"):
        jit(call)(normal(3), 2.0)


def test_loops_and_equation_agree_on_rank_two():
    x, w = normal(2, 3), normal(4, 3)
    how = {"window_strides": (), "padding": "VALID", "lhs_dilation": None}
    how |= {"rhs_dilation": None, "feature_group_count": 1, "batch_group_count": 1}
    how["dimension_numbers"] = None
    found = lax.conv_general_dilated(x, w, **how)
    assert np.allclose(found, by_loops(x, w, how), atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_whole_numbers_and_bools_may_be_asked_for_another_dtype(dtype):
    how = {"preferred_element_type": dtype}
    for a, v in (([1, 2], [1, 2, 3]), ([True, True], [True, False, True])):
        found = jnp.convolve(np.array(a), np.array(v), **how)
        assert found.dtype == dtype
        assert np.array_equal(found, np.convolve(np.int32(a), np.int32(v)))


def test_folds_begin_with_scalars():
    rows = jnp.ones((4, 3))
    with pytest.raises(TypeError, match=r"init_value to be scalars.*\(3,\)"):
        lax.reduce_window(rows, jnp.zeros(3), lax.add, (2, 2))
    with pytest.raises(ValueError, match=r"lax.reduce begins with scalars.*\(3,\)"):
        lax.reduce(rows, jnp.zeros(3), lax.add, (0,))


ONES, PADS = (1, 1, 1, 1), ((0, 0),) * 4


@pytest.mark.parametrize("kind", [np.array, list], ids=["array", "list"])
@pytest.mark.parametrize("call", "conv transposed patches folds counts pads".split())
def test_parameters_may_be_numpy_arrays(call, kind):
    x, w = jnp.ones((1, 2, 6, 6)), jnp.ones((2, 2, 3, 3))
    windows = (1, 1, 2, 2), (1, 1, 2, 1), PADS, ONES, (1, 1, 2, 1)
    names = "NCHW", "OIHW", "NCHW"
    calls = {
        "conv": lambda of: lax.conv_general_dilated(x, w, *map(of, around), names),
        "transposed": lambda of: lax.conv_transpose(
            x, w, of((2, 1)), of(PADS[:2]), of((1, 2)), names
        ),
        "patches": lambda of: lax.conv_general_dilated_patches(
            x, (2, 2), *map(of, around), names
        ),
        "folds": lambda of: lax.reduce_window(x, 0.0, lax.add, *map(of, windows)),
        "counts": lambda of: lax.reduce_window_shape_tuple(
            of(x.shape), *map(of, windows)
        ),
        "pads": lambda of: lax.padtype_to_pads(
            of((5, 6)), of((2, 3)), of((1, 2)), "SAME"
        ),
    }
    around = (2, 1), ((1, 0), (1, 1)), (2, 1), (1, 2)
    found, wanted = calls[call](kind), calls[call](tuple)
    assert np.array_equal(found, wanted)
    if call in ("counts", "pads"):
        assert found == wanted
        assert {type(n) for n in minijax.tree.leaves(found)} == {int}
