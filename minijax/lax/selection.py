"""Selection: primitives that choose among elements.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import all_weak, check_kind, check_same_dtype, listing
from minijax.core import Array, Primitive
from minijax.lax.factories import unify
from minijax.typing import ArrayLike

select_n_p = Primitive("select_n")


def _select_shape(which, *cases):
    check_kind("select_n", "biu", [which])
    if not cases:
        raise ValueError("select_n takes at least one case.")
    check_same_dtype("select_n", cases)
    shapes = {case.shape for case in cases}
    if len(shapes) > 1 or which.shape not in ((), *shapes):
        raise TypeError(
            "select cases must have the same shapes, and `which` that shape or none: "
            f"got {listing(case.shape for case in cases)} and {which.shape}."
        )
    if which.dtype.kind == "b" and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have {len(cases)} cases.")
    return [cases[0].update(weak_type=all_weak(cases))]


def _select(xp, which, *cases):
    if len(cases) == 2 and which.dtype.kind == "b":
        return xp.where(which, cases[1], cases[0])
    result = cases[0]
    for place, case in enumerate(cases):
        result = xp.where(which >= place, case, result)
    return result


primitive_rules(select_n_p, _select_shape, _select)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose elements among arrays.

    Args:
      which: bools or integers, of the shape of the cases or a scalar.
      *cases: arrays of one shape and dtype. An element of `which` that is out of
        range chooses the first case or the last.

    Reference: ``jax.lax.select_n``.
    """
    [result] = select_n_p.bind(which, *unify(*cases))
    return result


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose `on_true` where `pred` holds and `on_false` elsewhere; no broadcasting.

    Reference: ``jax.lax.select``.
    """
    return select_n(pred, on_false, on_true)


clamp_p = Primitive("clamp")


def _clamp_shape(low, x, high):
    check_same_dtype("clamp", [low, x, high])
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                f"got {name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    return [x.update(weak_type=all_weak([low, x, high]))]


primitive_rules(
    clamp_p,
    _clamp_shape,
    lambda xp, low, x, high: xp.minimum(xp.maximum(x, low), high),
)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit the elements of `x` to the interval from `min` to `max`.

    Args:
      min, max: bounds, of the shape of `x` or scalars.
      x: an array of the same dtype.

    Reference: ``jax.lax.clamp``.
    """
    [result] = clamp_p.bind(*unify(min, x, max))
    return result
