"""Initializers: variances, orthogonality, dtypes, refusals."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, random
from minijax.nn import initializers

KEY = random.key(7)
SCALED = {
    "glorot": lambda i, o: 2 / (i + o),
    "xavier": lambda i, o: 2 / (i + o),
    "lecun": lambda i, o: 1 / i,
    "he": lambda i, o: 2 / i,
    "kaiming": lambda i, o: 2 / i,
}


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_variances(name, kind, dtype):
    init = getattr(initializers, f"{name}_{kind}")()
    weights = np.array(init(KEY, (300, 200), dtype))
    assert weights.dtype == dtype
    assert abs(weights.mean()) < 2e-3
    assert np.isclose(np.var(weights), SCALED[name](300, 200), rtol=0.03)
    window = init(KEY, (3, 3, 30, 60))
    assert np.isclose(np.var(window), SCALED[name](270, 540), rtol=0.06)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg", "fan_geo_avg"])
def test_modes_and_axes(mode):
    how = initializers.variance_scaling(3.0, mode, "normal", 1, 0)
    inputs, outputs = 100, 400
    size = {
        "fan_in": inputs,
        "fan_out": outputs,
        "fan_avg": 250,
        "fan_geo_avg": 200,
    }[mode]
    assert np.isclose(np.var(how(KEY, (outputs, inputs))), 3 / size, rtol=0.03)


def test_simple_ones():
    assert (initializers.zeros(KEY, (2, 3)) == 0).all()
    assert initializers.ones(KEY, (2,), jnp.int32).dtype == np.int32
    assert (initializers.constant(4)(KEY, (2,)) == 4).all()
    assert initializers.uniform(0.1)(KEY, (99,)).min() >= 0
    assert np.isclose(initializers.normal(0.1)(KEY, (9999,)).std(), 0.1, rtol=0.03)
    assert abs(initializers.truncated_normal(1.0)(KEY, (999,))).max() <= 2
    assert initializers.uniform(dtype="float16")(KEY, (2,)).dtype == np.float16
    compiled = jit(lambda k: initializers.he_normal()(k, (3, 4)))
    np.testing.assert_allclose(
        compiled(KEY), initializers.he_normal()(KEY, (3, 4)), rtol=1e-6
    )
    assert isinstance(initializers.zeros, initializers.Initializer)


@pytest.mark.parametrize("shape, axis", [((6, 4), -1), ((2, 3, 4), -1), ((4, 6), 0)])
def test_orthogonal(shape, axis):
    weights = initializers.orthogonal(2.0, axis)(KEY, shape)
    columns = np.moveaxis(np.array(weights), axis, -1).reshape(-1, shape[axis])
    np.testing.assert_allclose(columns.T @ columns, 4 * np.eye(4), atol=1e-5)
    middle = initializers.delta_orthogonal()(KEY, (3, 5, 2, 4))
    assert not np.delete(middle, 1, 0).any() and middle[1, 2].any()


def test_mistakes():
    for shape in ((3,), ()):
        with pytest.raises(ValueError, match="Must be at least 2D"):
            initializers.he_normal()(KEY, shape)
        with pytest.raises(ValueError, match="at least a 2D shape"):
            initializers.orthogonal()(KEY, shape)
        with pytest.raises(ValueError, match="3D, 4D or 5D"):
            initializers.delta_orthogonal()(KEY, shape)
    with pytest.raises(ValueError, match="fan_in"):
        initializers.delta_orthogonal()(KEY, (3, 4, 2))
    with pytest.raises(ValueError, match="invalid mode .* fan_geo_avg"):
        initializers.variance_scaling(1, "fan", "normal")(KEY, (2, 3))
    with pytest.raises(ValueError, match="invalid distribution .* uniform"):
        initializers.variance_scaling(1, "fan_in", "norm")(KEY, (2, 3))
