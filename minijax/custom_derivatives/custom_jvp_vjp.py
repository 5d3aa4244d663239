"""Functions with derivatives of their own: stop_gradient, custom jvp and vjp rules.

References: ``jax.lax.stop_gradient``, ``custom_jvp_call_p``, ``custom_vjp_call_p`` in
``jax._src.custom_derivatives``, ``jax.custom_jvp``, ``jax.custom_vjp``.
"""

# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: FwdRule.__call__ (3d442abe).
# Amended in chapters/28_indexing_rest.md: BwdRule.__call__ (61ac2cf6).
# Amended in chapters/28_indexing_rest.md: custom_vjp.__call__ (1f2ad791).

from collections.abc import Callable
from functools import partial
from typing import Any

from minijax import lax
from minijax.arrays.array import def_shape_and_impl, shape_rules, typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.vmap import higher_order_primitives, move_one_axis, vmap_rules
from minijax.core import Primitive, RuleTable, Tracer, current_trace, impl_rules
from minijax.custom_derivatives.flat_functions import (
    OPTIMIZE_REMAT_CONFLICT,
    CustomRuleFunction,
    CustomVJPPrimal,
    FlatRule,
    JvpRule,
    batched_call_rule,
    callee_as_fun,
    check_pair,
    check_residual_refs,
    check_result,
    checked_cotangents,
    fun_name_of,
    hold_refs,
    instantiate_for_rule,
    pp_call_eqn,
    raise_closed_over,
    raise_if_tracers,
    release_refs,
    rule_operands,
    summed_rule,
)
from minijax.forward_mode.jvp import defjvp_zero, jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, JaxprTrace, trace_to_jaxpr
from minijax.jaxprs.pretty_printer import pp_eqn_default, pp_eqn_rules
from minijax.pytrees.api_util import check_aliases
from minijax.pytrees.argument_checks import refs_in
from minijax.pytrees.tree_util import tree_flatten, tree_leaves, tree_map
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.reverse_mode.transpose_rules import transpose_call_eqn

# Calls of functions with custom derivatives: primitives with functions inside.


def trace_to_closed_jaxpr(fun, args):
    """Return the program of a function, and what it uses without receiving it.

    Args:
      fun: a function from flat arguments to a list.
      args: arguments of the right types.

    Returns:
      A `ClosedJaxpr` from those values and the arguments to the results; the values.
    """
    jaxpr, consts = trace_to_jaxpr(fun, list(map(typeof, args)))
    invars = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars), []), consts


class CallPrimitive(Primitive):
    """A call of a function, which stays Python unless it has to be written down."""

    multiple_results = True

    def bind_all(self, *args, call_jaxpr, num_consts=0, **params):
        """Return the list of results.

        Args:
          *args: the operands: `num_consts` values that the program uses without
            being given them, and its arguments.
          call_jaxpr: what is called: a function of flat arguments, or a `ClosedJaxpr`.
          num_consts: their number.
          **params: the rules, and what they depend on.
        """
        staged = isinstance(current_trace(), JaxprTrace)
        if staged and not isinstance(call_jaxpr, ClosedJaxpr):
            call_jaxpr, consts = trace_to_closed_jaxpr(call_jaxpr, args)
            args, num_consts = [*consts, *args], num_consts + len(consts)
        params |= {"call_jaxpr": call_jaxpr, "num_consts": num_consts}
        return super().bind_all(*args, **params)


# Rules ``rule(eqn)`` return the `ClosedJaxpr` that an equation calls, None if it is no
# call: to run such an equation is to run that program.
callee_rules: RuleTable = RuleTable("callee", default=lambda eqn: None)


def _impl(*args, call_jaxpr, **params):
    return callee_as_fun(call_jaxpr)(*args)


def _shape(*avals, call_jaxpr, **params):
    return call_jaxpr.out_avals


def def_call_primitive(name):
    """Return a new primitive that calls a function, with the rules of every call."""
    primitive = CallPrimitive(name)
    higher_order_primitives.add(primitive)
    impl_rules[primitive], shape_rules[primitive] = _impl, _shape
    vmap_rules[primitive] = partial(batched_call_rule, primitive)
    pp_eqn_rules[primitive] = pp_call_eqn
    callee_rules[primitive] = lambda eqn: eqn.params["call_jaxpr"]
    return primitive


# Custom jvp rules: functions with a forward derivative of their own.

custom_jvp_call_p = def_call_primitive("custom_jvp_call")


def _jvp(primals, tangents, jvp, call_jaxpr, num_consts, **params):
    raise_closed_over("jvp", tangents[:num_consts])
    return jvp(rule_operands(call_jaxpr, primals[num_consts:]), tangents[num_consts:])


def _transpose(cts, *operands, call_jaxpr, **params):
    # A rule may call such a function on its tangents, as a part of a linear program.
    return transpose_call_eqn(call_jaxpr, operands, cts)


jvp_rules[custom_jvp_call_p] = _jvp
transpose_rules[custom_jvp_call_p] = _transpose


def _stopped(tree):
    """Return a static argument, no part of which moves."""
    return tree_map(lambda x: stop_gradient(x) if isinstance(x, Tracer) else x, tree)


class custom_jvp(CustomRuleFunction):
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
        leaves, function = self.flatten_call(args)
        params = {"name": function.name, "symbolic_zeros": self.symbolic_zeros}
        params["jvp"] = JvpRule(self.jvp, function, self.symbolic_zeros)
        outs = custom_jvp_call_p.bind(*leaves, call_jaxpr=function, **params)
        return function.out_tree.unflatten(outs)


# Primitives whose calls have no rules of their own: nothing is lost with the call.
transparent_calls: set = set()

custom_vjp_call_p = def_call_primitive("custom_vjp_call")
custom_lin_p = Primitive("custom_lin")
custom_lin_p.multiple_results = True


def _promise(primals, tangents, fwd, bwd, num_consts, symbolic_zeros, **params):
    """Run the forward rule, and promise the backward rule to the tape."""
    raise_closed_over("vjp", tangents[:num_consts])
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    in_zeros = tuple([tangent is None for tangent in tangents])
    outs, residuals = fwd(rule_operands(params["call_jaxpr"], primals), in_zeros)
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
    return pp_eqn_default(eqn, writing, params | {"in_zeros": [*params["in_zeros"]]})


pp_eqn_rules[custom_lin_p] = _write_lin


class FwdRule(FlatRule):
    """A user's forward rule, as a function of flat lists.

    Args:
      rule: called like the function; returns a pair: its result, and the residuals.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule gets a `CustomVJPPrimal` for each leaf.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = fun_name_of(rule)

    def __call__(self, primals, in_zeros):
        """Return the list of results, and the tree of residuals."""
        if self.symbolic_zeros:
            pairs = zip(primals, in_zeros)
            primals = [CustomVJPPrimal(x, not zero) for x, zero in pairs]
        pair = self.function.apply(self.rule, primals)
        out, residuals = check_pair("vjp", self.name, self.function, pair)
        check_residual_refs(self.name, self.function, residuals)
        outs = check_result("vjp", self.name, self.function, out)
        return outs, hold_refs(residuals)

    def batch_dims(self, dims, primals, in_zeros):
        """The flags are the same for all examples."""
        return [*dims, *[None] * len(in_zeros)]


def match_axis(ct, dim):
    """Return a cotangent, mapped in front, with that axis where its argument has it.

    Where the argument has none, all examples share it, and the cotangent is summed.
    """
    return lax.reduce_sum(ct, (0,)) if dim is None else move_one_axis(ct, 0, dim)


class BwdRule(FlatRule):
    """A user's backward rule, as a function of flat lists.

    Args:
      rule: called as ``rule(*static, residuals, cotangent)``; returns a tuple of
        cotangents.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule sees zeros as `SymbolicZero`.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = fun_name_of(rule)

    def __call__(self, residuals, cts):
        """Return the list of cotangents of the arguments; None is zero."""
        function, symbolic = self.function, self.symbolic_zeros
        pairs = zip(cts, function.out_avals)
        given = [instantiate_for_rule(ct, aval, symbolic) for ct, aval in pairs]
        outer = release_refs(residuals), function.out_tree.unflatten(given)
        return checked_cotangents(function, function.ask(self.rule, *outer))

    def batch_dims(self, dims, *trees):
        """Residuals and cotangents arrive with the mapped axis in front."""
        return [0] * len(tree_flatten(trees)[0])

    def placed(self, found, dims, axis):
        """Bring mapped axes, which are in front, where the arguments have them."""
        return [
            None if ct is None else match_axis(ct, dim) for ct, dim in zip(found, dims)
        ]


class custom_vjp(CustomRuleFunction):
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
            raise NotImplementedError(OPTIMIZE_REMAT_CONFLICT)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.fwd is None or self.bwd is None:
            self.refuse_without("VJP")
        args = self.positional(args, kwargs)
        if refs := refs_in(tree_leaves(args)):
            check_aliases("custom_vjp", self.fun, args, {})
            for ref in refs:  # whoever writes this down has captured it
                ref.read()
            fixed = self.nondiff_argnums
            args = [x if i in fixed else hold_refs(x) for i, x in enumerate(args)]
        leaves, function = self.flatten_call(args)
        raise_if_tracers(function.static)
        params = {"name": function.name, "symbolic_zeros": self.symbolic_zeros}
        params["fwd"] = FwdRule(self.fwd, function, self.symbolic_zeros)
        params["bwd"] = BwdRule(self.bwd, function, self.symbolic_zeros)
        outs = custom_vjp_call_p.bind(*leaves, call_jaxpr=function, **params)
        return function.out_tree.unflatten(outs)


# Values whose derivative is taken to be zero (stop-gradient).

stop_gradient_p = Primitive("stop_gradient")
def_shape_and_impl(stop_gradient_p, lambda x: [x], lambda xp, x: x)
jvp_rules[stop_gradient_p] = defjvp_zero(stop_gradient_p)
vmap_rules[stop_gradient_p] = lambda axis, args, dims: (
    stop_gradient_p.bind_all(*args),
    list(dims),
)
transpose_rules.reasons[stop_gradient_p] = (
    "It has no tangent, so no cotangent ever arrives at it."
)


def stop_gradient(x: Any) -> Any:
    """Return the arrays of a tree as they are, without the way they were made.

    What is computed with them has no derivative with respect to what they were
    computed from.

    Args:
      x: a tree of arrays and numbers.

    Raises:
      TypeError: for a leaf that is neither.

    Reference: ``jax.lax.stop_gradient``.
    """
    return tree_map(lambda leaf: stop_gradient_p.bind(leaf), x)
