"""Functions with arrays in their closures, taken apart into programs and arrays.

Reference: ``custom_gradient`` and ``closure_convert`` in
``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.trace import BatchTracer
from minijax.core import Tracer
from minijax.diagnostics.tracebacks import guarded
from minijax.forward.trace import JVPTracer
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.own_rules.cotangent_rules import custom_vjp
from minijax.own_rules.flat_functions import as_pair, name_of, refuse_result, take_apart
from minijax.own_rules.symbolic_zeros import tangent_aval
from minijax.pytrees.operations import treedef_is_leaf
from minijax.pytrees.registration import Partial
from minijax.pytrees.treedefs import tree_flatten


class WrittenRule:
    """A backward rule that was written down, as a function of its closure.

    Args:
      jaxpr: the program.
      out_tree: the structure of what the rule returns.
    """

    def __init__(self, jaxpr, out_tree):
        self.jaxpr, self.out_tree = jaxpr, out_tree

    def __call__(self, consts, ct):
        """Return the tuple of cotangents."""
        cts = eval_jaxpr(self.jaxpr, consts, *tree_flatten(ct)[0])
        found = self.out_tree.unflatten(cts)
        return (found,) if treedef_is_leaf(self.out_tree) else found


def write_rule(rule, out):
    """Return a backward rule as a `Partial` of the arrays that it closes over.

    Args:
      rule: a function of the cotangent of `out`.
      out: a tree of arrays.
    """
    leaves, function = take_apart("custom_gradient", rule, (out,), ())
    avals = [tangent_aval(typeof(leaf)) for leaf in leaves]
    jaxpr, consts = trace_to_jaxpr(function, avals)
    return Partial(WrittenRule(jaxpr, function.out_tree), consts)


def custom_gradient(fun: Callable) -> custom_vjp:
    """Return a function whose gradient is what `fun` returns besides its result.

    Args:
      fun: a function that returns a pair: its result, and a function from the cotangent
        of the result to the tuple of those of the arguments (one cotangent, if there is
        one argument). That function may close over arrays; it is written down, so it
        has no Python control flow that depends on values.

    Reference: ``jax.custom_gradient``.
    """

    who = f"The function {name_of(fun)} of custom_gradient"

    def both(*args, **kwargs):
        wanted = "its result and a function of the cotangent"
        out, rule = as_pair(fun(*args, **kwargs), who, wanted)
        if not callable(rule):
            raise TypeError(f"{who} must return a pair, {wanted}, not {rule!r}.")
        refuse_result(who, out)
        return out, rule

    def wrapped_fun(*args, **kwargs):
        return both(*args, **kwargs)[0]

    def fwd(*args, **kwargs):
        out, rule = both(*args, **kwargs)
        return out, write_rule(rule, out)

    def bwd(rule, ct):
        return rule(ct)

    wrapped_fun.users = bwd.__wrapped__ = fun  # this is what messages speak of
    function = custom_vjp(wrapped_fun)
    function.defvjp(fwd, bwd)
    return function


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """Return a function without a closure, and the values that were in it.

    Args:
      fun: a function of trees of arrays.
      *example_args: arguments of the right structure and types.

    Returns:
      A function of the same arguments, followed by the values; and the list of those
      values in the closure with respect to which a derivative may be taken.

    Raises:
      TypeError: when the function is called with trees of another structure.

    Reference: ``jax.closure_convert``.
    """
    leaves, function = take_apart("closure_convert", fun, example_args, ())
    jaxpr, consts = trace_to_jaxpr(function, list(map(typeof, leaves)))
    hoisted = [_may_move(const) for const in consts]

    @guarded
    def converted(*args):
        count = len(args) - sum(hoisted)
        given = iter(args[count:])
        values = [next(given) if h else c for h, c in zip(hoisted, consts)]
        leaves, tree = tree_flatten(args[:count])
        if tree != function.in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the "
                "same Pytree structure as the example arguments passed when "
                f"closure_convert was called. Expected {function.in_tree}, but got "
                f"{tree}"
            )
        return function.out_tree.unflatten(eval_jaxpr(jaxpr, values, *leaves))

    return converted, [const for h, const in zip(hoisted, consts) if h]


def _may_move(x):
    """Return whether a derivative may be taken with respect to a value.

    A batch may move where its elements can: the function of a `custom_vjp` rule that
    had it in its closure would meet it when vmap has ended.
    """
    if isinstance(x, BatchTracer) and _may_move(x.value):
        return True
    return isinstance(x, JVPTracer) or (
        isinstance(x, Tracer) and is_inexact(typeof(x).dtype)
    )
