"""The transpose of a function that is linear as it stands.

Reference: ``jax.linear_transpose``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.dtypes import is_inexact
from minijax.core import current_trace, lifetime, set_current_trace
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import JaxprTrace
from minijax.jaxprs.staging_api import abstractify
from minijax.linear.linearization import SplitTrace
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.registration import Partial
from minijax.reverse.backwards import Pullback, PullbackOnTrees, backward_pass
from minijax.reverse.transposition import Linear


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], Any]:
    """Return the transpose of a linear function.

    Args:
      fun: a function of arrays, scalars and trees of them, linear in all of them; it is
        not differentiated.
      *primals: examples of its arguments: arrays, scalars or `ShapeDtypeStruct`, of
        which only the shapes and dtypes matter.

    Returns:
      A function from a tree with the structure, shapes and dtypes of the result of
      `fun` to a tuple with a tree for each of `primals`.

    Raises:
      TypeError: if `fun` cannot be called, if arguments and results are neither all
        inexact nor all integers, or if a cotangent does not fit.
      NotImplementedError: if `fun` does to its arguments what is not linear.

    Reference: ``jax.linear_transpose``.
    """
    call = FlatCall("linear_transpose", fun, primals, typeof=abstractify)
    jaxpr, consts = linear_jaxpr(call, call.avals)
    refuse_mixed_dtypes(call, jaxpr.out_avals)
    pullback = Partial(Pullback(jaxpr, range(len(call.avals)), call.avals), consts)
    on_trees = PullbackOnTrees("transpose", call, jaxpr.out_avals, TypeError)
    return Partial(on_trees, pullback)


def linear_jaxpr(f, avals):
    """Write down a linear function; evaluate what does not depend on its arguments.

    Args:
      f: a function from arrays to a list of arrays.
      avals: the `ShapedArray` of each argument.

    Returns:
      The `Jaxpr`, and the list of values of its constants.
    """
    parent = current_trace()
    tape = JaxprTrace(parent)
    with lifetime(tape):
        with set_current_trace(SplitTrace(parent, tape)):
            outs = f(*map(tape.new_input, avals))
        return tape.to_jaxpr(outs)


def transposed_call(call, operands, cts):
    """Transpose a program that is called, after what is known in it was evaluated.

    A loop in it may carry known values beside linear ones: it is split first.

    Args:
      call: the `ClosedJaxpr`.
      operands: for each input its value, or a `Linear`.
      cts: for each result an array, or None for zero.

    Returns:
      For each input an array, or None: zero, or not linear.
    """
    linear = [isinstance(x, Linear) for x in operands]
    places = [x for x in operands if isinstance(x, Linear)]

    def function(*moving):
        given = iter(moving)
        args = [next(given) if flag else x for flag, x in zip(linear, operands)]
        return eval_jaxpr(call.jaxpr, call.consts, *args)

    jaxpr, consts = linear_jaxpr(function, [place.aval for place in places])
    arrived = iter(backward_pass(jaxpr, consts, places, cts))
    return [next(arrived) if flag else None for flag in linear]


def refuse_mixed_dtypes(call, out_avals):
    """Raise if a function turns floats into integers, or the other way round."""
    dtypes = [aval.dtype for aval in [*call.avals, *out_avals]]
    if len(set(map(is_inexact, dtypes))) > 1:
        ins, outs = (
            ", ".join(aval.dtype.name for aval in avals)
            for avals in (call.avals, out_avals)
        )
        raise TypeError(
            "linear_transpose works on functions from floats (or complex numbers) to "
            f"such, or from integers to integers; {call.fun_name} goes from {ins} to "
            f"{outs}."
        )
