"""Public functions of NumPy as universal functions with methods: `jnp.add.reduce`.

Reference: ``jax.numpy.ufunc``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax._lazy import decorators
from minijax.catalogue import floats
from minijax.compositions.function_objects import ufunc
from minijax.compositions.normalisation import logsumexp
from minijax.diagnostics.public_guards import guard_public
from minijax.numpy import arithmetic, elementwise, reductions, statistics, ufuncs
from minijax.numpy.reductions import fold, with_initial
from minijax.numpy.selection import masked
from minijax.operators.operands import kind


def reduce_extreme(function, a, dtype, **options):
    """Return the greatest or least element along axes, after a change of dtype."""
    return function(a if dtype is None else jnp.asarray(a, dtype), **options)


def reduce_bits(names, a, axis, dtype, keepdims, initial, where):
    """Combine elements along axes, bit by bit.

    Args:
      names: of the function of lax that folds, and of the one of two arrays.
      a: an array of integers or booleans.
      axis, dtype, keepdims, initial, where: as in `ufunc.reduce`.

    Raises:
      ValueError: for numbers that are not integers.
    """
    x = jnp.asarray(a)
    if kind(x) not in "biu":
        raise ValueError(f"{names[0]} needs integers or booleans, got {x.dtype}.")
    x = x if dtype is None else x.astype(dtype)
    one = np.array(-1 if names[1] == "bitwise_and" else 0).astype(x.dtype).item()
    folded = fold(getattr(lax, names[0]), masked(x, where, one), axis, keepdims)
    return with_initial(getattr(lax, names[1]), initial, folded)


def reduce_truth(names, a, dtype, **options):
    """Combine along axes whether elements are not 0; as `reduce_bits`."""
    return reduce_bits(names, jnp.asarray(a, bool), dtype=dtype, **options)


def reduce_logs(combine, scale, a, axis, dtype, keepdims, initial, where):
    """Add numbers along axes that are given, and returned, as their logarithms.

    Args:
      combine: the function of two arrays, for `initial`.
      scale: the natural logarithm of the base.
      a: an array.
      axis, keepdims, initial, where: as in `ufunc.reduce`.
      dtype: not used, as in JAX.
    """
    x = jnp.asarray(a) if scale == 1 else jnp.multiply(a, scale)
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    total = total if scale == 1 else total / scale
    return total if initial is None else combine(initial, total)


def change_at(method, a, indices, b):
    """Return `a`, changed at some places by a method of ``a.at[indices]``."""
    x = jnp.asarray(a)
    if x.dtype != bool:
        return getattr(x.at[indices], method)(b)
    counted = getattr(x.astype(int).at[indices], method)
    return counted(jnp.asarray(b, bool).astype(int)).astype(bool)


def subtract_at(a, indices, b):
    """Return `a` with numbers subtracted at some places."""
    return jnp.asarray(a).at[indices].subtract(b)


class PublicUfunc(ufunc):
    """A `ufunc` with a public name, under which pickle finds it."""

    __module__ = "minijax.numpy"

    def __reduce__(self):
        return self.__name__


def universal(function, identity=None, nin=2, **methods):
    """Return the `ufunc` with methods that calls a function of `minijax.numpy`."""
    return PublicUfunc(function, nin, 1, identity=identity, call=function, **methods)


add = universal(
    ufuncs.add,
    0,
    reduce=reductions.sum,
    accumulate=statistics.cumsum,
    at=partial(change_at, "add"),
)
multiply = universal(
    ufuncs.multiply,
    1,
    reduce=reductions.prod,
    accumulate=statistics.cumprod,
    at=partial(change_at, "mul"),
)
subtract = universal(ufuncs.subtract, at=subtract_at)
negative = universal(ufuncs.negative, nin=1)
maximum = universal(ufuncs.maximum, reduce=partial(reduce_extreme, reductions.max))
minimum = universal(elementwise.minimum, reduce=partial(reduce_extreme, reductions.min))


AND, OR, XOR = [(f"reduce_{name}", f"bitwise_{name}") for name in ("and", "or", "xor")]
bitwise_and = universal(ufuncs.bitwise_and, -1, reduce=partial(reduce_bits, AND))
bitwise_or = universal(ufuncs.bitwise_or, 0, reduce=partial(reduce_bits, OR))
bitwise_xor = universal(ufuncs.bitwise_xor, 0, reduce=partial(reduce_bits, XOR))
logical_and = universal(
    elementwise.logical_and, True, reduce=partial(reduce_truth, AND)
)
logical_or = universal(elementwise.logical_or, False, reduce=partial(reduce_truth, OR))
logical_xor = universal(
    elementwise.logical_xor, False, reduce=partial(reduce_truth, XOR)
)
logaddexp = universal(
    arithmetic.logaddexp,
    -np.inf,
    reduce=partial(reduce_logs, arithmetic.logaddexp, 1.0),
)
logaddexp2 = universal(
    floats.logaddexp2,
    -np.inf,
    reduce=partial(reduce_logs, floats.logaddexp2, np.log(2).item()),
)


# What the users of these names get; stubs are written from this table as well.
INSTEAD = {
    "minijax.numpy": """
        add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and
        logical_or logical_xor maximum minimum multiply negative subtract
    """
}
made = [globals()[name] for name in INSTEAD["minijax.numpy"].split()]
objects = {guard_public(one.func): one for one in made}


def with_methods(value, package):
    """Return what has methods in the place of a function of NumPy."""
    return objects.get(value, value) if callable(value) else value


decorators.append(with_methods)
