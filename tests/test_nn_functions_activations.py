"""Activation functions: values at the ends, slopes at corners, types."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, nn, vmap
from minijax.test_util import check_grads

REAL = """relu relu6 leaky_relu elu celu selu softplus squareplus sparse_plus sigmoid
sparse_sigmoid hard_sigmoid log_sigmoid tanh hard_tanh silu swish hard_silu hard_swish
gelu mish soft_sign identity""".split()
POINTS = jnp.array([-2.3, -0.7, 0.4, 1.6, 3.7])
FAR = jnp.array([-1e4, -1000.0, -90.0, -20.0, 20.0, 90.0, 1000.0, 1e4])


@pytest.mark.parametrize("name", REAL)
def test_slopes_are_those_of_differences_and_finite_far_away(name):
    f = getattr(nn, name)
    check_grads(f, (POINTS,), order=2, modes=("fwd", "rev"), atol=2e-2, rtol=2e-2)
    for g in (f, vmap(grad(f)), vmap(grad(grad(f)))):
        assert np.isfinite(g(FAR)).all()
        np.testing.assert_allclose(jit(g)(FAR), g(FAR), rtol=1e-5, atol=1e-6)
    assert np.array_equal(vmap(f)(FAR[:, None])[:, 0], f(FAR))


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes_stay(name, dtype):
    with minijax.enable_x64():
        assert getattr(nn, name)(jnp.zeros(3, dtype)).dtype == dtype


CORNERS = {
    "relu": (0.0, 0.0),
    "relu6": (6.0, 0.0),
    "leaky_relu": (0.0, 1.0),
    "elu": (0.0, 1.0),
    "softplus": (0.0, 0.5),
    "log_sigmoid": (0.0, 0.5),
    "hard_tanh": (1.0, 1.0),
}


@pytest.mark.parametrize("name", CORNERS)
def test_slopes_at_corners(name):
    place, slope = CORNERS[name]
    assert grad(getattr(nn, name))(place) == slope


def test_values():
    assert nn.relu(-3) == 0 and nn.relu(jnp.array([-1, 3])).dtype == np.int32
    assert nn.softplus(-50.0) == np.float32(np.exp(-50))
    assert nn.softplus(1000.0) == 1000
    small = nn.log1mexp(jnp.array([1e-6, 50.0]))
    np.testing.assert_allclose(small, [-13.815511, -1.9287498e-22], rtol=1e-6)
    exact = [nn.gelu(x, approximate=False) for x in (-1.0, 1.0)]
    np.testing.assert_allclose(exact, [-0.15865526, 0.8413447], rtol=1e-5)
    np.testing.assert_allclose(nn.glu(jnp.array([1.0, 2, 0, 100])), [0.5, 2])


def test_mistakes():
    with pytest.raises(TypeError, match="logistic does not accept dtype int32"):
        nn.sigmoid(3)
    with pytest.raises(ValueError, match=r"axis -1 of shape \(3,\) has an odd size"):
        nn.glu(jnp.ones(3))
    for name in REAL[2:]:
        with pytest.raises(TypeError):
            getattr(nn, name)("text")


def test_one_hot():
    labels = jnp.array([[0, 2], [1, 7]])
    for axis in (-1, 0, 1):
        found = nn.one_hot(labels, 3, axis=axis)
        wanted = np.moveaxis(np.eye(3, dtype="float32")[[[0, 2], [1, 0]]], -1, axis)
        wanted = wanted * np.expand_dims(np.array(labels) < 3, axis)
        assert found.dtype == np.float32 and np.array_equal(found, wanted)
    assert nn.one_hot(labels, 3, dtype=bool).dtype == bool
    named = vmap(
        lambda i: nn.one_hot(i, 4, axis="classes"),
        in_axes=None,
        axis_name="classes",
        axis_size=4,
    )
    assert np.array_equal(named(jnp.array([1, 3])), np.eye(4)[[1, 3]].T)
    with pytest.raises(ValueError, match="axis i, but 3 != 4"):
        vmap(lambda i: nn.one_hot(i, 3, axis="i"), axis_name="i")(jnp.arange(4))
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="num_classes"):
        jit(nn.one_hot)(labels, 3)
