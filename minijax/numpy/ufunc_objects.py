"""Universal functions as objects with methods: `jnp.add.reduce`, `jnp.frompyfunc`.

Reference: ``jax.numpy.ufunc``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import eval_shape, lax, vmap
from minijax import numpy as jnp
from minijax._lazy import decorators
from minijax.arrays.array import typeof
from minijax.arrays.numerics import (
    canonicalize_axis,
    canonicalize_int_tuple,
    operator_index,
)
from minijax.core import Array
from minijax.diagnostics.error_messages import public_with_boundary
from minijax.diagnostics.tracebacks import api_boundary
from minijax.dispatch.eager import EagerFunction
from minijax.errors import format_for_user
from minijax.lax.reductions import check_arraylike
from minijax.nn.functions import logsumexp
from minijax.numpy import array_methods as ufuncs
from minijax.numpy import reductions
from minijax.numpy import reductions as statistics
from minijax.numpy import ufuncs as arithmetic
from minijax.numpy import ufuncs as elementwise
from minijax.numpy import ufuncs as floats
from minijax.numpy.operands import array_kind
from minijax.numpy.reductions import combine_initial, reduce_axes
from minijax.numpy.ufuncs import where_mask
from minijax.pytrees.registry import _promising
from minijax.pytrees.tree_operations import resolve_promises
from minijax.typing import ArrayLike

# Universal functions with methods, made of a function of numbers.

of_arrays = partial(api_boundary, keeps_promises=True)


def refuse(name, **arguments):
    """Refuse arguments that are there for NumPy's sake.

    Raises:
      NotImplementedError: if one is given.
    """
    for argument, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"{argument} argument of {name}")


class ufunc:
    """A function of numbers that works element by element, with methods of its own.

    Args:
      func: a function of scalars, in terms of `minijax.numpy`.
      nin, nout: how many arguments and results it has.
      name: by default that of `func`.
      nargs: how many operands it counts; by default `nin`.
      identity: None, or a number that changes nothing as first argument.
      call: what to call with whole arrays; by default `func`, vectorized.
      reduce, accumulate, at, reduceat: what the methods of these names call, in the
        place of a loop around `func`.

    Reference: ``jax.numpy.ufunc``.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        nin, nout = canonicalize_int_tuple((nin, nout), "nin and nout")
        nargs = nin if nargs is None else operator_index(nargs, "nargs")
        self._facts = func, name or func.__name__, identity, nin, nout, nargs
        self.__name__, self.__doc__ = self._facts[1], func.__doc__
        self._call = call or self._element_by_element
        self._reduce = reduce or self._reduce_by_scan
        self._accumulate = accumulate or self._accumulate_by_scan
        self._at = at or self._at_by_scan
        self._reduceat = reduceat or self._reduceat_by_scan

    func = property(lambda self: self._facts[0])
    identity = property(lambda self: self._facts[2])
    nin = property(lambda self: self._facts[3])
    nout = property(lambda self: self._facts[4])
    nargs = property(lambda self: self._facts[5])

    def __hash__(self) -> int:
        return hash(self._facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._facts == other._facts

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    def __call__(self, *args: ArrayLike, out: Any = None, where: Any = None) -> Any:
        """Call the function with all elements; arguments broadcast."""
        try:
            if out is not None or where is not None:
                refuse(repr(self), out=out, where=where)
            return self._call(*(resolve_promises(args) if _promising else args))
        except Exception as error:  # here, since one more call would cost time
            format_for_user(error)
            raise

    def _element_by_element(self, *args):
        check_arraylike(self.__name__, *args)
        return jnp.vectorize(self.func)(*args)

    @of_arrays
    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Combine all elements along an axis, from left to right.

        Args:
          a: an array.
          axis: an integer, or None for all elements.
          dtype: of the result; by default what the function returns for `a`.
          out: has to be None.
          keepdims: whether to keep the axis, with size 1.
          initial: what to begin with; by default the identity, or the first element.
          where: booleans; what is False takes no part.

        Raises:
          ValueError: without anything to begin with.
        """
        self._check("reduce", a)
        refuse(f"{self.__name__}.reduce()", out=out)
        if where is not None:
            self._check_mask(where, initial)
        options = {"dtype": dtype, "keepdims": keepdims, "initial": initial}
        return self._reduce(a, axis=axis, where=where, **options)

    def _reduce_by_scan(self, a, axis, dtype, keepdims, initial, where):
        x, mask, axis, shape = _in_front(a, where, axis, keepdims)
        start = self.identity if initial is None else initial
        if not len(x) and start is None:
            raise ValueError(
                f"zero-size array to reduction operation {self.__name__} which has no "
                "identity"
            )
        x = x.astype(self._dtype(x) if dtype is None else dtype)
        first, rest = (x[0], slice(1, None)) if start is None else (start, slice(None))
        first = jnp.broadcast_to(jnp.asarray(first).astype(x.dtype), x.shape[1:])

        def step(state, row):
            y = self(state, row[0]).astype(x.dtype)
            return (y if mask is None else jnp.where(row[1], y, state)), None

        rows = (x[rest],) if mask is None else (x[rest], mask[rest])
        return lax.scan(step, first, rows)[0].reshape(shape)

    @of_arrays
    def accumulate(
        self, a: ArrayLike, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Return what `reduce` has after each element, along an axis."""
        self._check("accumulate", a)
        refuse(f"{self.__name__}.accumulate()", out=out)
        if not isinstance(axis, int):
            raise ValueError("accumulate does not allow multiple axes")
        return self._accumulate(a, axis=axis, dtype=dtype)

    def _accumulate_by_scan(self, a, axis, dtype):
        x, _, axis, _ = _in_front(a, None, axis, False)
        x = x.astype(self._dtype(x) if dtype is None else dtype)
        if not x.size:
            return jnp.moveaxis(x, 0, axis)
        self._check_dtype("accumulate", x.dtype)

        def step(state, row):
            y = self(state, row).astype(x.dtype)
            return y, y

        _, rest = lax.scan(step, x[0], x[1:])
        return jnp.moveaxis(jnp.concatenate([x[:1], rest]), 0, axis)

    @of_arrays
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """Call the function with each pair of an element of `A` and one of `B`."""
        self._check("outer", A, B)
        rows = vmap(vmap(self, (None, 0)), (0, None))(jnp.ravel(A), jnp.ravel(B))
        return rows.reshape(*np.shape(A), *np.shape(B))

    @of_arrays
    def at(
        self,
        a: ArrayLike,
        indices: Any,
        b: ArrayLike | None = None,
        /,
        *,
        inplace: bool = True,
    ) -> Array:
        """Return `a` with the function applied at some places, one after the other.

        Args:
          a: an array.
          indices: an index, or a tuple of them; a place may occur several times.
          b: second arguments, which broadcast to the shape of ``a[indices]``.
          inplace: has to be False, since arrays do not change.
        """
        if inplace:
            raise NotImplementedError(
                "JAX arrays are immutable: ufunc.at returns a new array with "
                "inplace=False."
            )
        check_arraylike(f"{self.__name__}.at", a, *(() if b is None else (b,)))
        return self._at(a, indices) if b is None else self._at(a, indices, b)

    def _at_by_scan(self, a, indices, *b):
        x, others = jnp.asarray(a), [jnp.asarray(y) for y in b]
        x = x.astype(self._dtype(x, *others))
        places = jnp.arange(x.size).reshape(x.shape)[indices]
        rows = [jnp.broadcast_to(y, places.shape).reshape(-1) for y in others]

        def step(state, row):
            place, *y = row
            return state.at[place].set(self(state[place], *y).astype(x.dtype)), None

        state, _ = lax.scan(step, x.reshape(-1), (places.reshape(-1), *rows))
        return state.reshape(x.shape)

    @of_arrays
    def reduceat(
        self,
        a: ArrayLike,
        indices: Any,
        axis: int = 0,
        dtype: Any = None,
        out: None = None,
    ) -> Array:
        """Combine the elements from each place to the next one in a list.

        Args:
          a: an array with an axis at least.
          indices: integers, of shape ``[n]``. Where a place is not before the next one
            the element itself is the result.
          axis: along which to combine.
          dtype: of the result; by default that of `a`.
          out: has to be None.
        """
        self._check("reduceat", a)
        refuse(f"{self.__name__}.reduceat()", out=out)
        starts = jnp.asarray(indices)
        if starts.ndim != 1:
            raise ValueError(
                f"reduceat: indices must be one-dimensional, got {starts.shape}"
            )
        if not isinstance(axis, int):
            raise ValueError("reduceat requires a single integer axis.")
        return self._reduceat(a, starts, axis=axis, dtype=dtype)

    def _reduceat_by_scan(self, a, starts, axis, dtype):
        x, _, axis, _ = _in_front(a, None, axis, False)
        x = x.astype(dtype or x.dtype)
        self._check_dtype("reduceat", x.dtype)
        ends = jnp.append(starts[1:], len(x))
        column = (-1, *[1] * (x.ndim - 1))

        def step(state, row):
            place, y = row
            y = self(state, jnp.broadcast_to(y, state.shape)).astype(x.dtype)
            inside = (starts < place) & (place < ends)
            return jnp.where(inside.reshape(column), y, state), None

        rows, _ = lax.scan(step, jnp.take(x, starts, 0), (jnp.arange(len(x)), x))
        return jnp.moveaxis(rows, 0, axis)

    def _check(self, method, *args):
        """Raise a ValueError if the function is not one of two numbers to one."""
        check_arraylike(f"{self.__name__}.{method}", *args)
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(
                f"{method} only supported for functions returning a single value"
            )

    def _check_mask(self, where, initial):
        """Raise a ValueError unless `where` is of booleans and has a beginning."""
        check_arraylike(f"{self.__name__}.reduce", where)
        if self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation {self.__name__!r} does not have an identity, so "
                "to use a where mask one has to specify 'initial'."
            )
        if array_kind(where) != "b":
            raise ValueError(f"where has to be of booleans, not {typeof(where)}.")

    def _check_dtype(self, method, dtype):
        """Raise a TypeError if results would lose something on their way back."""
        result = self._dtype(jnp.ones((), dtype))
        if jnp.promote_types(result, dtype) != dtype:
            raise TypeError(
                f"{self.__name__}.{method} of {dtype} has results of {result}. Convert "
                f"the array first, or pass dtype={result.name!r}."
            )

    def _dtype(self, *args):
        """Return the dtype of the function's result, for arrays like these."""
        ones = [jnp.ones((), x.dtype) for x in args]
        return eval_shape(self.func, *(ones * self.nin)[: self.nin]).dtype


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> ufunc:
    """Return a `ufunc` that calls a function of numbers.

    Reference: ``jax.numpy.frompyfunc``.
    """
    return ufunc(func, nin, nout, identity=identity)


def _in_front(a, mask, axis, keepdims):
    """Bring the axis of a reduction to the front.

    Returns:
      The array, the mask (or None), the axis, and the shape of the result.
    """
    x = jnp.asarray(a)
    mask = None if mask is None else jnp.broadcast_to(mask, x.shape)
    kept = [1] * x.ndim
    if axis is None:
        x, mask = x.reshape(-1), None if mask is None else mask.reshape(-1)
        return x, mask, 0, tuple(kept) if keepdims else ()
    axis = canonicalize_axis(axis, x.ndim)
    kept = [*x.shape[:axis], *[1] * keepdims, *x.shape[axis + 1 :]]
    mask = None if mask is None else jnp.moveaxis(mask, axis, 0)
    return jnp.moveaxis(x, axis, 0), mask, axis, tuple(kept)


# Public functions of NumPy as universal functions with methods: `jnp.add.reduce`.


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
    if array_kind(x) not in "biu":
        raise ValueError(f"{names[0]} needs integers or booleans, got {x.dtype}.")
    x = x if dtype is None else x.astype(dtype)
    one = np.array(-1 if names[1] == "bitwise_and" else 0).astype(x.dtype).item()
    folded = reduce_axes(
        getattr(lax, names[0]), where_mask(x, where, one), axis, keepdims
    )
    return combine_initial(getattr(lax, names[1]), initial, folded)


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
    call = EagerFunction(function)
    return PublicUfunc(function, nin, 1, identity=identity, call=call, **methods)


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
objects = {public_with_boundary(one.func): one for one in made}


def with_methods(value, package):
    """Return what has methods in the place of a function of NumPy."""
    return objects.get(value, value) if callable(value) else value


decorators.append(with_methods)
