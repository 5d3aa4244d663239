"""Custom vjp rules: functions with a backward derivative of their own.

Reference: ``jax.custom_vjp``.
"""

# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.rules import move_axis, vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.own_rules.flat_functions import (
    CallRule,
    Decorated,
    name_of,
    refuse_tracers,
)
from minijax.own_rules.function_calls import call_primitive
from minijax.own_rules.rule_results import (
    NOT_BOTH,
    check_pair,
    check_result,
    checked_cotangents,
    refuse_closed_over,
)
from minijax.own_rules.symbolic_zeros import CustomVJPPrimal, written_out
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.transposition import transpose_rules

custom_vjp_call_p = call_primitive("custom_vjp_call")
custom_lin_p = Primitive("custom_lin")


def _promise(primals, tangents, fwd, bwd, num_consts, symbolic_zeros, **params):
    """Run the forward rule, and promise the backward rule to the tape."""
    refuse_closed_over("vjp", tangents[:num_consts])
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    in_zeros = tuple([tangent is None for tangent in tangents])
    outs, residuals = fwd(primals, in_zeros)
    values, res_tree = tree_flatten(residuals)
    slopes = custom_lin_p.bind(
        *values,
        *(tangent for tangent in tangents if tangent is not None),
        bwd=bwd,
        in_zeros=in_zeros,
        num_res=len(values),
        out_avals=tuple(map(typeof, outs)),
        res_tree=res_tree,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, spread_inexact(map(typeof, outs), slopes)


jvp_rules[custom_vjp_call_p] = _promise
transpose_rules.reasons[custom_vjp_call_p] = (
    "Its derivative is its own rule's; the call itself is linear in nothing."
)


def spread_inexact(avals, values):
    """Return a list with a value for each inexact type, and None for the others."""
    values = iter(values)
    return [next(values) if is_inexact(aval.dtype) else None for aval in avals]


def _lin_shape(*avals, out_avals, **params):
    return [aval for aval in out_avals if is_inexact(aval.dtype)]


def _lin_transpose(cts, *operands, bwd, in_zeros, num_res, out_avals, res_tree, **_):
    residuals = res_tree.unflatten(operands[:num_res])
    found = bwd(residuals, spread_inexact(out_avals, cts))
    arrived = [ct for ct, zero in zip(found, in_zeros) if not zero]
    return [None] * num_res + arrived


def _refuse_forward(*args, **params):
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")


shape_rules[custom_lin_p], transpose_rules[custom_lin_p] = _lin_shape, _lin_transpose
impl_rules[custom_lin_p] = jvp_rules[custom_lin_p] = _refuse_forward
vmap_rules[custom_lin_p] = _refuse_forward


def _write_lin(eqn, writing):
    """Leave out what JAX leaves out: the types and the structure."""
    shown = ("bwd", "in_zeros", "num_res", "symbolic_zeros")
    params = {key: eqn.params[key] for key in shown}
    return write_plainly(eqn, writing, params | {"in_zeros": [*params["in_zeros"]]})


print_rules[custom_lin_p] = _write_lin


class FwdRule(CallRule):
    """A user's forward rule, as a function of flat lists.

    Args:
      rule: called like the function; returns a pair: its result, and the residuals.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule gets a `CustomVJPPrimal` for each leaf.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = name_of(rule)

    def __call__(self, primals, in_zeros):
        """Return the list of results, and the tree of residuals."""
        if self.symbolic_zeros:
            pairs = zip(primals, in_zeros)
            primals = [CustomVJPPrimal(x, not zero) for x, zero in pairs]
        pair = self.function.apply(self.rule, primals)
        out, residuals = check_pair("vjp", self.name, self.function, pair)
        return check_result("vjp", self.name, self.function, out), residuals

    def dims_of(self, dims, primals, in_zeros):
        """The flags are the same for all examples."""
        return [*dims, *[None] * len(in_zeros)]


class BwdRule(CallRule):
    """A user's backward rule, as a function of flat lists.

    Args:
      rule: called as ``rule(*static, residuals, cotangent)``; returns a tuple of
        cotangents.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule sees zeros as `SymbolicZero`.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = name_of(rule)

    def __call__(self, residuals, cts):
        """Return the list of cotangents of the arguments; None is zero."""
        function, symbolic = self.function, self.symbolic_zeros
        pairs = zip(cts, function.out_avals)
        given = [written_out(ct, aval, symbolic) for ct, aval in pairs]
        found = function.ask(self.rule, residuals, function.out_tree.unflatten(given))
        return checked_cotangents(function, found)

    def dims_of(self, dims, *trees):
        """What forward rule and caller hand over has the axis in front."""
        return [0] * len(tree_flatten(trees)[0])

    def placed(self, found, dims, axis):
        """Sum over the examples where they share an argument."""
        return [ct if ct is None else at_place(ct, dim) for ct, dim in zip(found, dims)]


def at_place(ct, dim):
    """Return a cotangent with its mapped axis at `dim`; summed, if that is None."""
    return lax.reduce_sum(ct, (0,)) if dim is None else move_axis(ct, 0, dim)


class custom_vjp(Decorated):
    """A function with a derivative of its own, for reverse mode only.

    Args:
      fun: a function of trees of arrays.
      nondiff_argnums, nondiff_argnames: positions and names of arguments that no
        derivative concerns: any values but tracers. The forward rule gets them in
        their places, the backward rule before all others.

    Raises:
      AttributeError: at a call, if no rules were defined.
      TypeError: at a call, if the arguments do not fit; later, if what a rule returns
        does not, or in forward mode.

    Reference: ``jax.custom_vjp``.
    """

    kind = "custom_vjp"
    fwd = bwd = None
    symbolic_zeros = optimize_remat = False

    def defvjp(
        self, fwd: Callable, bwd: Callable, symbolic_zeros=False, optimize_remat=False
    ) -> None:
        """Define the rules.

        Args:
          fwd: called like the function; returns the pair of its result and the
            residuals, a tree of arrays.
          bwd: called with the residuals and the cotangent of the result; returns a
            tuple with a cotangent for each argument, or None for zero.
          symbolic_zeros: whether `fwd` gets `CustomVJPPrimal` and `bwd` `SymbolicZero`.
          optimize_remat: accepted for compatibility; it has no influence on values.

        Raises:
          NotImplementedError: if both of them are wanted.
        """
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(NOT_BOTH)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.fwd is None or self.bwd is None:
            self.refuse_without("VJP")
        args = self.positional(args, kwargs)
        leaves, function = self.take_apart(args)
        refuse_tracers(function.static)
        params = {"name": function.name, "symbolic_zeros": self.symbolic_zeros}
        params["fwd"] = FwdRule(self.fwd, function, self.symbolic_zeros)
        params["bwd"] = BwdRule(self.bwd, function, self.symbolic_zeros)
        outs = custom_vjp_call_p.bind(*leaves, call_jaxpr=function, **params)
        return function.out_tree.unflatten(outs)
