"""What is asked of a call: a function, positions, tangents, leaves that are arrays.

Reference: ``jax.api_util``, ``jax.jvp``.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: CallChecks._check_output (3c84b050).

import inspect
from collections.abc import Sequence
from contextvars import ContextVar

import numpy as np

from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import float0, is_canonical_dtype, tangent_dtype_of_primal
from minijax.arrays.numerics import operator_index
from minijax.lax import broadcast_in_dim
from minijax.lax.arithmetic import astype
from minijax.numpy.operands import as_array


def check_callable(fun):
    """Raise a TypeError if `fun` is no function that returns its result."""
    if isinstance(fun, staticmethod):
        raise TypeError(
            f"staticmethod arguments are not supported, got {fun}. Take the function "
            "from its class, or from fun.__func__."
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")


def resolve_argnums(name, argnums, num_args, error=TypeError):
    """Return positions of arguments as a tuple of integers from 0 on.

    Args:
      name: of the transformation, for messages.
      argnums: an integer or a sequence of integers; negative ones count from the end.
      num_args: the number of positional arguments.
      error: the class of the error if there are not that many arguments.

    Raises:
      TypeError: if `argnums` is neither.
      error: if a position is too large.
      ValueError: if a negative position reaches beyond the first argument, or if two
        positions are the same.
    """
    positions = []
    for argnum in argnums if isinstance(argnums, Sequence) else [argnums]:
        position = operator_index(argnum, f"argnums of {name}")
        if position >= num_args:
            raise error(
                f"{name}: differentiating with respect to argnums={argnums} requires "
                f"at least {position + 1} positional arguments to be passed by the "
                f"caller, but got only {num_args} positional arguments."
            )
        if position < -num_args:
            raise ValueError(
                f"{name} with argnums={argnums}: there is no argument {position} in a "
                f"call with {num_args} positional arguments."
            )
        positions.append(position % num_args)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}: argnums={argnums} names an argument twice.")
    return tuple(positions)


def positional_names(fun, count):
    """Return the names of the first `count` positional arguments of a function."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        parameters = ()
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [p.name for p in parameters if p.kind in kinds]
    rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    label = rest[0] if rest else "args"
    return [*names, *(f"{label}[{i}]" for i in range(count - len(names)))][:count]


# The `Loan`s in use while transformed functions run: of references, to stand-ins.
lent_refs: ContextVar = ContextVar("lent_refs", default=())


class MutableReference:
    """A leaf that holds an array and may come to hold another; see `new_ref`."""

    __slots__ = ()

    def read(self):
        """Return the array that it holds here."""
        raise NotImplementedError(f"{type(self).__name__} has no read")

    def write(self, value):
        """Let it hold another array from here on."""
        raise NotImplementedError(f"{type(self).__name__} has no write")

    def str_short(self):
        """Return its type in short."""
        raise NotImplementedError(f"{type(self).__name__} has no type")


def is_ref(x):
    """Return whether `x` is a reference to an array."""
    return isinstance(x, MutableReference)


def refs_in(values):
    """Return the references among values, a list."""
    return [x for x in values if isinstance(x, MutableReference)]


def read_refs(values):
    """Return values, with the array that it holds in place of each reference."""
    return [x.read() if isinstance(x, MutableReference) else x for x in values]


def write_refs(refs, outs):
    """Write the last results of a program to references, and return the others."""
    count = len(outs) - len(refs)
    for ref, final in zip(refs, outs[count:]):
        ref.write(final)
    return outs[:count]


class CallChecks:
    """What is refused at the entrance and at the exit of a call, and in which words.

    A subclass has the `name` of the transformation and the name of the function, the
    `leaves`, and says what each leaf is called.
    """

    def _input_aval(self, typeof, i):
        try:
            return typeof(self.leaves[i])
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{self.name} works on arrays and scalars, but in the call of "
                f"{self.fun_name} the argument {self.name_of(i)} is of type "
                f"{type(self.leaves[i]).__name__}. {error}"
            ) from None

    def _check_output(self, out, i):
        if is_ref(out):
            raise ValueError(
                f"function {self.fun_name} traced for {self.name} returned a mutable "
                f"array reference of type {out.str_short()} at output tree path "
                f"result{self.out_name(i)}, but mutable array references cannot be "
                "returned. Return what it holds, ref[...], or pass the reference as an "
                "argument and write to it."
            )
        try:
            typeof(out)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{self.name} works on arrays and scalars. Output from "
                f"{'batched ' * (self.name == 'vmap')}function {self.fun_name}: it "
                f"returned a value of type {type(out).__name__} "
                f"at result{self.out_name(i)}. {error}"
            ) from None


def check_primals_and_tangents(primals, tangents):
    """Raise a TypeError unless both are tuples or lists, one entry for an argument."""
    if not (isinstance(primals, (tuple, list)) and isinstance(tangents, (tuple, list))):
        raise TypeError(
            "jvp takes a tuple (or list) of primals, one for each argument, and a "
            f"tuple of tangents; got a {type(primals).__name__} and a "
            f"{type(tangents).__name__}. With one argument, write (x,) and (t,)."
        )


def tangent_leaf(call, i, tangent):
    """Return the tangent of leaf `i` if it fits: None for integers, which stay put."""
    primal, given = call.avals[i], _tangent_aval(call, i, tangent)
    expected = tangent_dtype_of_primal(primal.dtype)
    if given.dtype != expected:
        raise TypeError(
            f"jvp: the primal {call.name_of(i)} has dtype {primal.dtype.name}, so its "
            f"tangent must have dtype {_name(expected)}, not {_name(given.dtype)}."
            + _advice(expected)
        )
    if given.shape != primal.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes: the primal "
            f"{call.name_of(i)} has shape {primal.shape} and its tangent {given.shape}."
        )
    return None if expected == float0 else tangent


def _tangent_aval(call, i, tangent):
    if isinstance(tangent, np.ndarray) and tangent.dtype == float0:
        return ShapedArray(tangent.shape, float0)
    try:
        return typeof(tangent)
    except (TypeError, ValueError) as error:
        message = f"jvp: the tangent of {call.name_of(i)}: {error}"
        raise type(error)(message) from None


def _name(dtype):
    return "float0" if dtype == float0 else dtype.name


def _advice(expected):
    if expected != float0:
        return ""
    return (
        " Integers and booleans have no directions to move in: pass "
        "np.zeros(shape, minijax.dtypes.float0), or a float for the primal."
    )


def instantiate_tangent(primal, tangent):
    """Return a tangent as an array: zeros of the right kind where it is None.

    Args:
      primal: the value that it is a tangent of.
      tangent: an array, or None, which stands for zero.
    """
    return zeros_of_tangent(typeof(primal)) if tangent is None else tangent


def zeros_of_tangent(aval):
    """Return the zero tangent of a primal with the given abstract value."""
    dtype = tangent_dtype_of_primal(aval.dtype)
    if dtype == float0:
        return np.zeros(aval.shape, float0)
    if is_canonical_dtype(dtype):
        zero = np.zeros((), dtype)
        array = as_array(zero.item() if aval.weak_type else zero)
    else:  # NumPy's zero would be narrowed on its way in
        array = astype(0.0, dtype, aval.weak_type)
    return broadcast_in_dim(array, aval.shape, ()) if aval.shape else array
