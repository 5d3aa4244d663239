"""Checkify's rules for operations that can return NaN, or reach out of bounds."""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax._registry import Registry
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.experimental.checkify.error_values import (
    DivisionByZeroError,
    NaNError,
    OOBError,
)
from minijax.indexing.dimension_numbers import Windows
from minijax.numpy.fft.fourier import fft_p

NUMBER_RULES: dict = Registry()


def look_for_nan(checks, eqn, outs):
    """Record whether a result is NaN somewhere."""
    found = [jnp.isnan(x).any() for x in outs if is_inexact(typeof(x).dtype)]
    if NaNError in checks.wanted and found:
        checks.note(jnp.array(found).any(), NaNError, (eqn.primitive.name,))
    return outs


def _checked_number(checks, eqn, *operands):
    return look_for_nan(checks, eqn, eqn.primitive.bind(*operands, **eqn.params))


def _checked_quotient(checks, eqn, x, y):
    if DivisionByZeroError in checks.wanted:
        checks.note(jnp.equal(y, 0).any(), DivisionByZeroError)
    return _checked_number(checks, eqn, x, y)


NUMBERS = """
    acos acosh add asin asinh atan2 atan atanh cbrt cos cosh cumlogsumexp cummax cummin
    cumprod cumsum digamma dot_general erf_inv erf erfc exp expm1 integer_pow lgamma
    log1p log logistic mul pad pow psum reduce_prod reduce_sum rem rsqrt sin sinh sqrt
    sub tan tanh conv_general_dilated linear_solve reduce_window reduce_window_sum
""".split()
for _primitive in (*[getattr(lax, f"{name}_p") for name in NUMBERS], fft_p):
    NUMBER_RULES[_primitive] = _checked_number
NUMBER_RULES[lax.div_p] = _checked_quotient


def look_at_places(checks, eqn, operand, starts, sizes, axes):
    """Record whether windows reach out of bounds, and the first index that does.

    Args:
      checks: the `Checks`.
      eqn: the equation.
      operand: the array.
      starts: integers, the numbers of an index along the last axis.
      sizes: those of a window along `axes`.
      axes: the axes of the operand that the numbers are for.
    """
    if OOBError not in checks.wanted or not np.prod(typeof(starts).shape):
        return
    shape = typeof(operand).shape
    lengths = np.array([shape[axis] for axis in axes])
    bounds = np.minimum(lengths - sizes, np.iinfo(typeof(starts).dtype).max)
    outside = (starts < 0) | (starts > bounds.astype(typeof(starts).dtype))
    first = jnp.argmax(outside.ravel())
    number = jnp.asarray(first % len(axes))
    found = [starts.ravel()[first], jnp.array(axes)[number], jnp.array(lengths)[number]]
    payload = jnp.stack([x.astype(np.int32) for x in found])
    checks.note(outside.any(), OOBError, (eqn.primitive.name, shape), payload)


def _checked_slice(checks, eqn, operand, *starts, slice_sizes):
    starts = jnp.stack(starts) if starts else jnp.zeros(0, np.int32)
    axes = range(len(slice_sizes))
    look_at_places(checks, eqn, operand, starts, np.array(slice_sizes, int), axes)
    return eqn.primitive.bind(operand, *starts, slice_sizes=slice_sizes)


def _checked_update(checks, eqn, operand, update, *starts):
    sizes = np.array(typeof(update).shape, int)
    given = jnp.stack(starts) if starts else jnp.zeros(0, np.int32)
    look_at_places(checks, eqn, operand, given, sizes, range(len(starts)))
    return eqn.primitive.bind(operand, update, *starts)


def _checked_gather(checks, eqn, operand, indices, **params):
    axes = params["dimension_numbers"].start_index_map
    sizes = np.array([params["slice_sizes"][axis] for axis in axes], int)
    look_at_places(checks, eqn, operand, indices, sizes, axes)
    return eqn.primitive.bind(operand, indices, **params)


def _checked_scatter(checks, eqn, operand, indices, updates, **params):
    numbers = params["dimension_numbers"]
    axes = numbers.scatter_dims_to_operand_dims
    windows = Windows(*numbers).sizes(typeof(operand).ndim, typeof(updates).shape)
    sizes = np.array([windows[axis] for axis in axes], int)
    look_at_places(checks, eqn, operand, indices, sizes, axes)
    outs = eqn.primitive.bind(operand, indices, updates, **params)
    return look_for_nan(checks, eqn, outs) if OOBError in checks.wanted else outs


for _rule, _names in {
    _checked_slice: "dynamic_slice",
    _checked_update: "dynamic_update_slice",
    _checked_gather: "gather",
    _checked_scatter: """
        scatter scatter_add scatter_sub scatter_mul scatter_min scatter_max
    """,
}.items():
    for _name in _names.split():
        NUMBER_RULES[getattr(lax, f"{_name}_p")] = (
            lambda checks, eqn, *operands, rule=_rule: rule(
                checks, eqn, *operands, **eqn.params
            )
        )
