"""Axes, sizes and positions of arguments that are a range: any sequence of integers."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

REDUCTIONS = """
    all amax amin any average count_nonzero max mean min nanmax nanmean nanmin nanprod
    nanstd nansum nanvar prod ptp std sum var
""".split()
GATHERED = "j.lax.GatherDimensionNumbers(range(2), range(1), range(1))"
SCATTERED = "j.lax.ScatterDimensionNumbers(range(2), range(1), range(1))"
FIRST = "jnp.zeros((1,), int)"
CALLS = f"""
    jnp.add.reduce(x, axis=range(2))
    jnp.expand_dims(x, range(2))
    jnp.squeeze(x[None, None], range(2))
    jnp.moveaxis(x, range(2), range(1, 3))
    jnp.flip(x, range(2))
    jnp.roll(x, range(2), range(2))
    jnp.gradient(x, axis=range(2))
    jnp.trim_zeros(x, axis=range(2))
    jnp.size(x, axis=range(2))
    jnp.linalg.vector_norm(x, axis=range(2))
    jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)), axes=range(0))
    jnp.histogramdd(jnp.ones((4, 2)), bins=range(2, 4))
    jnp.fft.fftn(x, axes=range(2))
    jnp.fft.fftshift(x, axes=range(2))
    jnp.zeros(range(2, 4))
    x.sum(range(2))
    x.transpose(range(3))
    x.squeeze(range(0))
    j.nn.softmax(x, axis=range(2))
    j.nn.log_softmax(x, axis=range(2))
    j.nn.standardize(x, axis=range(2))
    j.scipy.special.softmax(x, axis=range(2))
    j.lax.reduce(x, 0.0, j.lax.add, range(2))
    j.lax.transpose(x, range(3))
    j.lax.dot_general(x, x, ((range(2, 3), range(2, 3)), (range(2), range(2))))
    j.lax.gather(x, {FIRST}, {GATHERED}, (1, 3, 4))
    j.jit(lambda x: j.lax.gather(x, {FIRST}, {GATHERED}, (1, 3, 4)))(x)
    j.grad(lambda x: j.lax.gather(x, {FIRST}, {GATHERED}, (1, 3, 4)).sum())(x)
    j.vmap(lambda x: j.lax.gather(x, {FIRST}, {GATHERED}, (1, 3, 4)))(x[None])
    j.lax.scatter(x, {FIRST}, x[1], {SCATTERED})
    j.jit(lambda x: j.lax.scatter_add(x, {FIRST}, x[1], {SCATTERED}))(x)
    j.grad(lambda x: j.lax.scatter_add(x, {FIRST}, x[1], {SCATTERED}).sum())(x)
    j.grad(lambda a, b: a * b, argnums=range(2))(1.0, 2.0)
    j.value_and_grad(lambda a, b: a * b, argnums=range(2))(1.0, 2.0)
    j.jacfwd(lambda a, b: a * b, argnums=range(2))(1.0, 2.0)
    j.hessian(lambda a, b: a * b, argnums=range(2))(1.0, 2.0)
"""


def answer(text, j):
    jnp = j.numpy
    x = jnp.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    found = eval(text, {"j": j, "jnp": jnp, "x": x})
    return [np.asarray(leaf) for leaf in j.tree.leaves(found)]


@pytest.mark.parametrize(
    "text",
    [f"jnp.{name}(x, axis=range(2))" for name in REDUCTIONS]
    + [line.strip() for line in CALLS.strip().splitlines()],
)
def test_a_range_is_a_sequence_of_axes_as_in_jax(text):
    ours, theirs = answer(text, minijax), answer(text, jax)
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)
