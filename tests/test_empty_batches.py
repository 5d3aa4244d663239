"""vmap over no examples: each result has its shape behind an axis of size 0."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import eval_shape, grad, jit, jvp, lax, random, vmap


def convolution(strides=(1, 1), padding="VALID", **how):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, **how)


IMAGE, TAPS = (1, 2, 5, 6), (4, 2, 2, 3)
IN_ROWS = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
CALLS = {
    "convolution": (convolution(), IMAGE, TAPS),
    "same": (convolution((2, 1), "SAME"), IMAGE, TAPS),
    "gaps": (convolution((1, 1), [(1, 0)] * 2, lhs_dilation=(2, 2)), IMAGE, TAPS),
    "wide window": (convolution(rhs_dilation=(2, 2)), IMAGE, (4, 2, 2, 2)),
    "features": (convolution(feature_group_count=2), (2, 4, 5, 6), (4, 2, 2, 2)),
    "batches": (convolution(batch_group_count=2), (4, 2, 5, 6), (4, 2, 2, 2)),
    "rows": (convolution(**IN_ROWS), (2, 5, 6, 2), (2, 2, 2, 3)),
    "transposed": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        (1, 5, 6, 2),
        (2, 2, 2, 3),
    ),
    "convolve": (jnp.convolve, (5,), (3,)),
    "dot": (lax.dot, (2, 3), (3, 4)),
    "sort": (lambda x, y: lax.sort((x, y))[1], (5,), (5,)),
    "gather": (lambda x, y: x[y.astype(int)], (4, 3), (2,)),
    "scatter": (lambda x, y: x.at[:2].add(y), (4, 3), (2, 3)),
    "windows": (lambda x, y: lax.cumsum(x) * y, (4,), (4,)),
    "pooling": (
        lambda x, y: lax.reduce_window(x * y, 0.0, lax.add, (2,), (1,), "VALID"),
        (5,),
        (5,),
    ),
    "solve": (jnp.linalg.solve, (3, 3), (3,)),
    "svd": (lambda x, y: jnp.linalg.svd(x)[1] * y, (3, 3), (3,)),
    "fft": (lambda x, y: jnp.fft.fft(x * y).real, (4,), (4,)),
    "scan": (lambda x, y: lax.scan(lambda c, z: (c * z, c), x, y)[1], (), (3,)),
    "while": (
        lambda x, y: lax.while_loop(lambda c: c.sum() < 3, lambda c: c + y, x),
        (2,),
        (2,),
    ),
    "branch": (lambda x, y: lax.cond(x > 0, jnp.sin, jnp.cos, y), (), (2,)),
    "permutation": (lambda x, y: lax.ppermute(x * y, "examples", []), (3,), (3,)),
    "total": (lambda x, y: lax.psum(x * y, "examples"), (3,), (3,)),
}
ONE_WAY = {"while"}  # no gradients


def mapped(shape, dim):
    return shape if dim is None else (*shape[:dim], 0, *shape[dim:])


@pytest.mark.parametrize("name", CALLS)
def test_no_examples(name):
    call, *shapes = CALLS[name]
    ones = [jnp.ones(shape) for shape in shapes]
    named = vmap(call, axis_size=1, in_axes=None, axis_name="examples")
    out = eval_shape(named, *ones).shape[1:]
    for dims in itertools.product((None, 0, 1), repeat=2):
        if dims == (None, None) or any(d and not s for d, s in zip(dims, shapes)):
            continue
        args = [jnp.ones(mapped(*pair)) for pair in zip(shapes, dims)]
        f = vmap(call, dims, axis_name="examples")
        expected = out if name == "total" else (0, *out)
        if name == "total":
            f = vmap(call, dims, out_axes=None, axis_name="examples")
        assert f(*args).shape == jit(f)(*args).shape == expected
        assert jvp(f, args, args)[1].shape == expected
        if name not in ONE_WAY:
            slopes = grad(lambda *xs, f=f: f(*xs).sum(), (0, 1))(*args)
            assert [s.shape for s in slopes] == [x.shape for x in args]
            assert not any(map(np.any, slopes))


def test_a_sample_of_shares_without_any():
    assert random.dirichlet(random.key(0), jnp.ones(0)).shape == (0,)
