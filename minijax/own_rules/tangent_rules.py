"""Custom jvp rules: functions with a forward derivative of their own.

Reference: ``jax.custom_jvp``.
"""

# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import reduce
from typing import Any

from minijax.arrays.avals import typeof
from minijax.core import Tracer
from minijax.forward.rules import add_tangents, jvp_rules, zeros_like_tangent
from minijax.own_rules.flat_functions import CallRule, Decorated, name_of
from minijax.own_rules.function_calls import call_primitive
from minijax.own_rules.rule_results import (
    check_pair,
    check_result,
    check_structures,
    check_tangents,
    refuse_closed_over,
)
from minijax.own_rules.stopped_gradients import stop_gradient
from minijax.own_rules.symbolic_zeros import none_if_zero, type_of_tangent, written_out
from minijax.pytrees.functions import tree_map
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.linear_functions import transposed_call
from minijax.reverse.transposition import transpose_rules

custom_jvp_call_p = call_primitive("custom_jvp_call")


def _jvp(primals, tangents, jvp, num_consts, **params):
    refuse_closed_over("jvp", tangents[:num_consts])
    return jvp(primals[num_consts:], tangents[num_consts:])


def _transpose(cts, *operands, call_jaxpr, **params):
    return transposed_call(call_jaxpr, operands, cts)


jvp_rules[custom_jvp_call_p] = _jvp
transpose_rules[custom_jvp_call_p] = _transpose


class JvpRule(CallRule):
    """The rule of a user, for trees of arrays, as one of flat lists.

    Args:
      rule: called as ``rule(*static, primals, tangents)``; returns a pair of trees.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule sees zeros as `SymbolicZero`.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = name_of(rule)

    def __call__(self, primals, tangents):
        """Return the list of results, and the list of their tangents."""
        function, unflatten = self.function, self.function.in_tree.unflatten
        given = [self._written_out(*pair) for pair in zip(primals, tangents)]
        pair = function.ask(self.rule, unflatten(primals), unflatten(given))
        out, slope = check_pair("jvp", self.name, function, pair)
        slopes, tree = tree_flatten(slope)
        check_structures(self.name, function, tree_flatten(out)[1], tree)
        outs = check_result("jvp", self.name, function, out)
        check_tangents(list(map(typeof, outs)), list(map(type_of_tangent, slopes)))
        return outs, list(map(none_if_zero, slopes))

    def _written_out(self, primal, tangent):
        return written_out(tangent, typeof(primal), self.symbolic_zeros)

    def dims_of(self, dims, primals, tangents):
        """Each tangent that is there is mapped as its primal is."""
        return [*dims, *(d for d, t in zip(dims, tangents) if t is not None)]


def summed_rule(function, jvps):
    """Return a rule that sums what rules for single arguments return.

    Args:
      function: the decorated function.
      jvps: for each argument a function ``jvp(tangent, result, *primals)``, or None.
    """
    if function.nondiff_argnums:
        raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

    def jvp(primals, tangents):
        out = function(*primals)
        zeros = tree_map(zeros_like_tangent, out)
        parts = [
            rule(tangent, out, *primals) if rule else zeros
            for tangent, rule in zip(tangents, jvps)
        ]
        return out, tree_map(lambda *ts: reduce(add_tangents, ts), *parts)

    return jvp


def _stopped(tree):
    """Return a static argument, no part of which moves."""
    return tree_map(lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, tree)


class custom_jvp(Decorated):
    """A function with a derivative of its own, for forward mode and all that uses it.

    Args:
      fun: a function of trees of arrays.
      nondiff_argnums, nondiff_argnames: positions and names of arguments that no
        derivative concerns: any values, which the rule gets before all others.

    Raises:
      AttributeError: at a call, if no rule was defined.
      TypeError: at a call, if the arguments do not fit; later, if what a rule returns
        does not.

    Reference: ``jax.custom_jvp``.
    """

    kind = "custom_jvp"
    jvp: Callable | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Define the rule.

        Args:
          jvp: called as ``jvp(primals, tangents)`` with two tuples, one entry for each
            argument; returns the pair of the result and its tangent.
          symbolic_zeros: whether it sees zeros as `SymbolicZero`; otherwise they are
            arrays of zeros.

        Returns:
          `jvp`, so that this can be a decorator.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Define a rule for each argument by itself.

        Args:
          *jvps: for each argument a function ``jvp(tangent, result, *primals)`` that
            returns what its tangent contributes to that of the result, or None.
        """
        self.defjvp(summed_rule(self, jvps))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.jvp is None:
            self.refuse_without("JVP")
        args = self.positional(args, kwargs)
        fixed = self.nondiff_argnums
        args = [_stopped(x) if i in fixed else x for i, x in enumerate(args)]
        leaves, function = self.take_apart(args)
        params = {"name": function.name, "symbolic_zeros": self.symbolic_zeros}
        params["jvp"] = JvpRule(self.jvp, function, self.symbolic_zeros)
        outs = custom_jvp_call_p.bind(*leaves, call_jaxpr=function, **params)
        return function.out_tree.unflatten(outs)
