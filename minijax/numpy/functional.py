"""Functions applied along axes or element by element; common divisors.

References: ``jax.numpy.vectorize``, ``jax.numpy.apply_along_axis``,
``jax.numpy.gcd``, ``jax.numpy.lcm``.
"""

# Made from chapters/15_branches_rest.md by `make chapter`;
# edit the chapter, not this file.

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax._lazy import wraps
from minijax.arrays.config import check_rank_promotion
from minijax.arrays.numerics import canonicalize_axis
from minijax.batching.vmap import vmap
from minijax.control_flow.conditionals import switch
from minijax.control_flow.while_loops import while_loop
from minijax.core import Array
from minijax.lax.reductions import check_arraylike, promote_dtypes
from minijax.numpy.array_creation import asarray, astype, zeros_like
from minijax.numpy.array_methods import where
from minijax.numpy.joining import concatenate
from minijax.numpy.operands import array_kind, as_array
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import argmax, cumsum
from minijax.numpy.shapes import (
    as_arraylike,
    broadcast_arrays,
    broadcast_shapes,
    canonicalize_shape,
    expand_dims,
    squeeze,
)
from minijax.numpy.ufuncs import absolute
from minijax.typing import ArrayLike

# Functions of NumPy that call a user's function for each element, row or axis.


class _Signature(NamedTuple):
    """The axes that a function takes and returns itself, by name.

    Attributes:
      text: as the user wrote it.
      inputs, outputs: for each argument, each result, the names of its last axes.
    """

    text: str
    inputs: list
    outputs: list


_NAMES = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = rf"{_NAMES}(?:,{_NAMES})*->{_NAMES}(?:,{_NAMES})*"


def _parsed(text):
    """Return the `_Signature` that a text such as ``"(n,m),(m)->(n)"`` says."""
    if not re.fullmatch(_SIGNATURE, text.replace(" ", "")):
        raise ValueError(f"not a valid gufunc signature: {text}")
    sides = text.replace(" ", "").split("->")
    found = [
        [tuple(re.findall(r"\w+", names)) for names in re.findall(_NAMES, side)]
        for side in sides
    ]
    return _Signature(text, *found)


class _Sizes(dict):
    """The sizes of named axes, as they become known.

    Args:
      context: what an error says besides.
    """

    def __init__(self, context):
        super().__init__()
        self.context = context

    def note(self, shape, names):
        """Note the sizes of the last axes; raise if they contradict others."""
        for name, size in zip(names, shape):
            if self.setdefault(name, size) != size:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {size} vs "
                    f"{self[name]} {self.context}"
                )

    def outer(self, x, names):
        """Return the shape of an argument without the axes that have names."""
        if x.ndim < len(names):
            raise ValueError(
                f"input with shape {x.shape} does not have enough dimensions for all "
                f"core dimensions {names} {self.context}"
            )
        outer = x.ndim - len(names)
        self.note(x.shape[outer:], names)
        return x.shape[:outer]

    def check_outputs(self, found, outputs):
        """Raise unless results have the axes that the signature says."""
        if len(outputs) > 1 and not isinstance(found, tuple):
            raise TypeError(
                "output must be a tuple when multiple outputs are expected, got: "
                f"{found}\n{self.context}"
            )
        parts = found if isinstance(found, tuple) else (found,)
        if len(parts) != len(outputs):
            raise TypeError(
                f"wrong number of output arguments: expected {len(outputs)}, got "
                f"{len(parts)} {self.context}"
            )
        for part, names in zip(parts, outputs):
            shape = np.shape(part)
            if len(shape) != len(names):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {names} "
                    f"{self.context}"
                )
            self.note(shape, names)
        return found


def vectorize(
    pyfunc: Callable,
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable:
    """Return a function that calls another one for each element, with broadcasting.

    It is `vmap`, once for each axis of the broadcast arguments.

    Args:
      pyfunc: a function of numbers; with a signature, of arrays.
      excluded: positions and names of arguments that it gets as they are.
      signature: the axes that it takes itself, such as ``"(n,m),(m)->(n)"``.

    Raises:
      TypeError: if `excluded` or the number of arguments or results is wrong.
      ValueError: if shapes do not fit the signature or each other.

    Reference: ``jax.numpy.vectorize``.
    """
    if any(not isinstance(each, (str, int)) for each in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but "
            f"excluded={excluded!r}"
        )
    if any(isinstance(each, int) and each < 0 for each in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    context = f"on vectorized function with {excluded=} and {signature=}"

    @wraps(pyfunc)
    def wrapped(*args, **kwargs):
        fixed = {i for i, x in enumerate(args) if i in excluded or x is None}
        moving = [x for i, x in enumerate(args) if i not in fixed]

        def function(*given):
            others = iter(given)
            row = [x if i in fixed else next(others) for i, x in enumerate(args)]
            return pyfunc(*row, **kwargs)

        if signature is None:
            return _mapped(function, moving, [()] * len(moving), _Sizes(context))
        names = _parsed(signature)
        inputs = _without(names, args, fixed, excluded, context)
        sizes = _Sizes(context)

        def checked(*given):
            return sizes.check_outputs(function(*given), names.outputs)

        return _mapped(checked, moving, inputs, sizes)

    return wrapped


def _without(names, args, fixed, excluded, context):
    """Return the names of the axes of those arguments that are not excluded."""
    absent = {i for i in fixed if i not in excluded}
    places = [i for i in range(len(args)) if i not in excluded]
    if len(places) != len(names.inputs):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(names.inputs)}, got "
            f"{len(places)} {context}"
        )
    pairs = [*zip(places, names.inputs)]
    if any(axes for i, axes in pairs if i in absent):
        raise ValueError(
            f"Cannot pass None at locations {absent} with signature={names.text!r}"
        )
    return [axes for i, axes in pairs if i not in absent]


def _mapped(function, args, inputs, sizes):
    """Call a function for each place of the broadcast outer axes of its arguments.

    Args:
      function: of as many arrays.
      args: the arrays.
      inputs: for each the names of the axes that the function takes itself.
      sizes: a `_Sizes`, which checks these.
    """
    args = [*map(asarray, args)]
    outer = [sizes.outer(x, names) for x, names in zip(args, inputs)]
    if len({len(shape) for x, shape in zip(args, outer) if x.ndim}) > 1:
        check_rank_promotion("jnp.vectorize", [x.shape for x in args])
    whole = broadcast_shapes(*outer)
    filled = [(1,) * (len(whole) - len(shape)) + shape for shape in outer]
    args = [
        squeeze(x, [axis for axis, size in enumerate(shape) if size == 1])
        for x, shape in zip(args, outer)
    ]
    alone = []
    for place in reversed(range(len(whole))):
        axes = [None if shape[place] == 1 else 0 for shape in filled]
        if any(axis is not None for axis in axes):
            function = vmap(function, tuple(axes))
        else:
            alone.append(place)
    found = function(*args)
    if not alone:
        return found
    if isinstance(found, tuple):
        return tuple([expand_dims(each, tuple(alone)) for each in found])
    return expand_dims(found, tuple(alone))


def apply_along_axis(
    func1d: Callable, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Call a function of vectors for each vector along an axis of an array.

    Args:
      func1d: called with the vector, and what follows.
      axis: along which; the axes of its result take this one's place.
      arr: the array.
      *args, **kwargs: more for `func1d`.

    Reference: ``jax.numpy.apply_along_axis``.
    """
    check_arraylike("apply_along_axis", arr)
    ndim = np.ndim(arr)
    axis = canonicalize_axis(axis, ndim)

    def function(vector):
        return func1d(vector, *args, **kwargs)

    for later in range(1, ndim - axis):
        function = vmap(function, in_axes=later, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)


def apply_over_axes(
    func: Callable[[Any, int], Array], a: Any, axes: Sequence[int]
) -> Array:
    """Call a function of an array and an axis for one axis after the other.

    Args:
      func: returns an array with as many axes, or without that one.
      a: the array for the first call; later ones get what came before.
      axes: the axes.

    Reference: ``jax.numpy.apply_over_axes``.
    """
    a = as_arraylike("apply_over_axes", a)
    for axis in axes:
        found = func(a, axis)
        if found.ndim not in (a.ndim, a.ndim - 1):
            raise ValueError("function is not returning an array of the correct shape")
        a = found if found.ndim == a.ndim else expand_dims(found, axis)
    return a


def fromfunction(
    function: Callable, shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Array:
    """Return the array whose elements are a function of their indices.

    Args:
      function: of one number for each axis; it is called once, under `vmap`.
      shape: the shape.
      dtype: of the indices.
      **kwargs: more for the function, one row for each index along an axis.

    Reference: ``jax.numpy.fromfunction``.
    """
    shape = canonicalize_shape(shape)
    for place in range(len(shape)):
        axes = [0 if place == other else None for other in range(len(shape))]
        function = vmap(function, in_axes=tuple(axes[::-1]))
    return function(*[arange(size, dtype=dtype) for size in shape], **kwargs)


def piecewise(
    x: ArrayLike,
    condlist: Sequence[ArrayLike],
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """Return for each element what the function of its condition makes of it.

    Args:
      x: an array.
      condlist: arrays of booleans; the last one that holds decides.
      funclist: a function of a number, or a number, for each; and, if there is one
        more, one for where no condition holds, in place of 0.
      *args, **kw: more for the functions.

    Reference: ``jax.numpy.piecewise``.
    """
    x = as_arraylike("piecewise", x)
    count = len(condlist)
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are "
            f"expected; got {len(funclist)}"
        )
    otherwise = [*funclist[count:]] or [0]
    branches = [_branch(f, x.dtype, args, kw) for f in [*otherwise, *funclist[:count]]]
    tests = asarray(condlist, dtype=bool)
    steps = concatenate([zeros_like(tests[:1]), tests], 0)
    which = argmax(cumsum(steps, 0), 0)
    return vectorize(lambda i, each: switch(i, branches, each))(which, x)


def _branch(function, dtype, args, kw):
    """Return a function or a number as a function of a number and of one dtype."""
    if not callable(function):
        return lambda x: asarray(function, dtype=dtype)
    return lambda x: astype(function(x, *args, **kw), dtype)


# Greatest common divisors and least common multiples.


def _euclid(pair):
    """Return the smaller of two numbers and the rest of the other; then 0 and 0."""
    x, y = pair
    going = y != 0
    return where(going, y, x), where(going, lax.rem(x, where(going, y, 1)), 0)


def _integers(name, x1, x2):
    check_arraylike(name, x1, x2)
    x1, x2 = map(as_array, promote_dtypes(x1, x2))
    if array_kind(x1) not in "iu":
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return [absolute(x) for x in broadcast_arrays(x1, x2)]


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greatest common divisors of integers, by Euclid's algorithm.

    Reference: ``jax.numpy.gcd``.
    """
    pair = tuple(_integers("gcd", x1, x2))
    found = while_loop(lambda pair: (pair[1] != 0).any(), _euclid, pair)[0]
    return absolute(found)  # the least integer has no positive one, and leaves a sign


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the least common multiples of integers; 0 if one of them is 0.

    Reference: ``jax.numpy.lcm``.
    """
    x1, x2 = _integers("lcm", x1, x2)
    divisor: Any = gcd(x1, x2)
    none = divisor == 0
    return where(none, 0, x1 * (x2 // where(none, 1, divisor)))
