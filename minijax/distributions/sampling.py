"""What samplers ask of their arguments.

Reference: ``_check_shape``, ``_check_broadcast_shapes`` in ``jax._src.random.core``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.randomness.making_keys import check_one_key, float_dtype, shape_asked

WORDS = (
    "{} parameter shapes must be broadcast-compatible with shape argument, and the "
    "result of broadcasting the shapes must equal the shape argument, but got result "
    "{} for shape argument {}."
)


def check_shape(name, shape, *shapes):
    """Raise a ValueError unless the shapes of parameters broadcast to a shape."""
    broadcast = lax.broadcast_shapes(shape, *shapes)
    if shape != broadcast:
        raise ValueError(WORDS.format(name, broadcast, shape))


def sample_shape(name, shape, *params):
    """Return the shape that was asked for, or the one that parameters broadcast to."""
    shapes = [np.shape(x) for x in params]
    if shape is None:
        return lax.broadcast_shapes(*shapes)
    shape = shape_asked(shape)
    check_shape(name, shape, *shapes)
    return shape


def check_cast(name, dtype, *params):
    """Raise unless parameters become a dtype without losing anything."""
    for x in params:
        if jnp.result_type(x, dtype) != dtype:
            raise ValueError(
                f"In arguments to {name}, cannot safely cast argument of type "
                f"{jnp.result_type(x)} to {dtype}"
            )


def start(name, key, shape, dtype, *params, cast=False):
    """Return the key, the shape and the dtype of a sample of floats.

    Args:
      name: of the sampler.
      key, shape, dtype: what the user gave.
      *params: parameters of the distribution.
      cast: whether the parameters have to be safe to convert.
    """
    key, _ = check_one_key(name, key)
    dtype = float_dtype(name, dtype)
    shape = sample_shape(name, shape, *params)
    if cast:
        check_cast(name, dtype, *params)
    return key, shape, dtype


def filled(x, dtype, shape):
    """Return a parameter as an array of the dtype and the shape of the sample."""
    return jnp.broadcast_to(lax.convert_element_type(x, dtype), shape)
