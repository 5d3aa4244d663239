"""Functions and derivative rules of users, as functions of flat arguments, checked.

References: ``resolve_kwargs``, ``argnums_partial`` in ``jax._src.api_util``,
``jax.custom_derivatives.SymbolicZero``, ``CustomVJPPrimal``, ``_flatten_jvp``,
``_flatten_fwd``, ``_flatten_bwd`` in ``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: FlatFunction.apply, raise_not_array
#   (5d1e08a0).

import dataclasses
import functools
import inspect
from functools import reduce
from typing import Any

from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import float0, is_inexact
from minijax.batching.vmap import batch_dim_to_front, batch_flat_fun
from minijax.core import Tracer
from minijax.diagnostics.tracebacks import api_boundary
from minijax.errors import UnexpectedTracerError
from minijax.forward_mode.jvp import add_or_none, zeros_like_tangent_aval
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.jaxprs.pretty_printer import pp_eqn_default
from minijax.numpy.operands import as_array
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.argument_checks import is_ref, zeros_of_tangent
from minijax.pytrees.registry import keystr, register_pytree_node
from minijax.pytrees.tree_util import (
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
)
from minijax.reverse_mode.argument_checks import aval_text

# Functions and derivative rules of users, as functions of flat arguments.


def fun_name_of(fun):
    """Return what a function is called in messages and programs."""
    inner = fun.func if isinstance(fun, functools.partial) else fun
    return getattr(inner, "__name__", None) or type(inner).__name__


def resolve_kwargs(kind, fun, args, kwargs):
    """Return all arguments of a call by position, defaults included.

    Args:
      kind: of the decorated function, ``"custom_jvp"`` or ``"custom_vjp"``.
      fun: the function that was decorated.
      args, kwargs: the arguments of the call.

    Raises:
      TypeError: if that cannot be done.
    """
    try:
        return _bound(fun, args, kwargs)
    except TypeError as error:
        raise TypeError(
            f"The input arguments to the {kind}-decorated function {fun_name_of(fun)} "
            "could not be resolved to positional-only arguments. Binding failed with "
            f"the error:\n{error}"
        ) from error


def _bound(fun, args, kwargs):
    if isinstance(fun, functools.partial):  # its signature names what is filled in
        return (lambda *args: args)(*args, **kwargs)
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            "The following keyword arguments could not be resolved to positions: "
            + ", ".join(bound.kwargs)
        )
    return bound.args


def nondiff_positions(fun, argnums, argnames):
    """Return the sorted positions of arguments that no derivative concerns.

    Args:
      fun: the function that is decorated.
      argnums: an integer, or a sequence of them.
      argnames: a name, or a sequence of them.

    Raises:
      ValueError: if `fun` has no argument of one of the names.
    """
    nums = [argnums] if isinstance(argnums, int) else [*argnums]
    names = [argnames] if isinstance(argnames, str) else [*argnames]
    known = list(inspect.signature(fun).parameters) if names else []
    for name in names:
        if name not in known:
            raise ValueError(
                f"nondiff_argnames names {name!r}, but the arguments of "
                f"{fun_name_of(fun)} are {', '.join(known)}."
            )
    return tuple(sorted({*nums, *map(known.index, names)}))


class Held:
    """A reference as a part of a tree that has no leaves.

    Args:
      ref: the reference.
    """

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref


register_pytree_node(Held, lambda held: ((), held.ref), lambda ref, _: Held(ref))


def holds(in_tree):
    """Return whether a structure has `Held` references in it."""
    tree = in_tree.unflatten(range(in_tree.num_leaves))
    return any(map(_is_held, tree_leaves(tree, is_leaf=_is_held)))


def hold_refs(tree):
    """Return a tree with `Held` in place of references."""
    return tree_map(lambda x: Held(x) if is_ref(x) else x, tree)


def _is_held(x):
    return isinstance(x, Held)


def release_refs(tree):
    """Return a tree with references in place of `Held`."""
    return tree_map(lambda x: x.ref if _is_held(x) else x, tree, is_leaf=_is_held)


class FlatFunction:
    """One call of a function on trees, as a function of flat arguments.

    Args:
      fun: the user's function, with positional arguments only.
      in_tree: the structure of the tuple of its arguments, static ones left out.
      in_avals: the abstract values of their leaves.
      static: dictionary from positions to the static arguments.

    Attributes:
      out_tree, out_avals: the structure of the result, and the abstract values of its
        leaves; None before the first call.
    """

    def __init__(self, fun, in_tree, in_avals, static):
        self.fun, self.in_tree, self.in_avals = fun, in_tree, in_avals
        self.static, self.name = static, fun_name_of(fun)
        self.out_tree, self.out_avals = None, None

    def __call__(self, *flat):
        """Return the leaves of the result, a list."""
        result = self.apply(self.fun, flat)
        outs, self.out_tree = tree_flatten(result)
        try:
            self.out_avals = list(map(typeof, outs))
        except (TypeError, ValueError):
            raise_not_array(self.name, result)
            raise
        return outs

    def apply(self, fun, flat):
        """Call a function of the same arguments as the user's."""
        others = iter(release_refs(self.in_tree.unflatten(flat)))
        count = len(self.in_tree.children()) + len(self.static)
        static = self.static
        return fun(*[static[i] if i in static else next(others) for i in range(count)])

    def ask(self, rule, *args):
        """Call a rule, which gets the static arguments before all others."""
        return rule(*[self.static[i] for i in sorted(self.static)], *args)


def check_residual_refs(name, function, residuals):
    """Raise if a residual is a reference that the forward rule was not given."""
    held = function.in_tree.unflatten(range(function.in_tree.num_leaves))
    given = [x.ref for x in tree_leaves(held, is_leaf=_is_held) if _is_held(x)]
    for x in tree_leaves(residuals):
        if is_ref(x) and x not in given:
            raise ValueError(
                f"custom_vjp fwd function {name} returned the mutable array reference "
                f"{x!r} among its residuals, which is none of its arguments. Pass the "
                "reference as an argument."
            )


def raise_not_array(name, result):
    """Raise an error that says where a result holds something that is no array."""
    for path, leaf in tree_leaves_with_path(result):
        if is_ref(leaf):
            raise ValueError(
                f"{name} returned a mutable array reference, {leaf!r}, at "
                f"result{keystr(path)}, but references cannot be returned."
            )
        try:
            typeof(leaf)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name} returned a value of type {type(leaf).__name__} at "
                f"result{keystr(path)}. {error}"
            ) from None


def unpack_pair(found, name, wanted):
    """Return the two parts of what a user's function returned, or raise.

    Args:
      found: what it returned.
      name: of the function, for the message.
      wanted: what the two are, in words.
    """
    try:
        first, second = found
    except (TypeError, ValueError) as error:
        kind = type(found).__name__
        raise type(error)(
            f"{name} must return a pair, {wanted}; it returned {kind}: {error}."
        ) from None
    return first, second


def flatten_call(kind, fun, args, nondiff):
    """Return the leaves of arguments, and the `FlatFunction` that takes them.

    Args:
      kind: what the function was given to, such as ``"custom_jvp"``, for messages.
      fun: the user's function.
      args: its arguments.
      nondiff: positions of those that are static.

    Raises:
      TypeError: if a leaf of the others is no array or scalar.
    """
    static = {i: args[i] for i in nondiff if i < len(args)}
    others = tuple([arg for i, arg in enumerate(args) if i not in static])
    leaves, in_tree = tree_flatten(others)
    try:
        avals = list(map(typeof, leaves))
    except (TypeError, ValueError):
        moving = tuple([i for i in range(len(args)) if i not in static])
        fun = getattr(fun, "users", fun)
        FlatCall(kind, fun, args, argnums=moving)  # its error names the argument
        raise
    return leaves, FlatFunction(fun, in_tree, avals, static)


class CustomRuleFunction:
    """A function to which rules can be given, as an object that is called like it.

    Args:
      fun: the function.
      nondiff_argnums, nondiff_argnames: positions and names of static arguments.
    """

    kind = ""  # for messages

    def __init_subclass__(cls):
        cls.__call__ = api_boundary(cls.__call__)

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)

    def __getattr__(self, name):
        """Return what the function inside takes rules by, such as ``def_vmap``."""
        if name in ("def_vmap", "defjvp", "defjvps", "defvjp") and "fun" in vars(self):
            return getattr(self.fun, name)
        kind = type(self).__name__
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; each kind binds a primitive of its own."""
        raise NotImplementedError

    def refuse_without(self, rule):
        """Raise if a rule is missing; `rule` is what messages call it."""
        raise AttributeError(
            f"No {rule} defined for {self.kind} function {fun_name_of(self.fun)} using "
            f"def{rule.lower()}."
        )

    def positional(self, args, kwargs):
        """Return all arguments of a call by position."""
        return resolve_kwargs(self.kind, self.fun, args, kwargs)

    def flatten_call(self, args):
        """Return the leaves of arguments, and the `FlatFunction` that takes them."""
        return flatten_call(self.kind, self.fun, args, self.nondiff_argnums)


def raise_if_tracers(static):
    """Raise if a value that a rule of reverse mode holds belongs to a trace."""
    if any(isinstance(leaf, Tracer) for leaf in tree_leaves(static)):
        raise UnexpectedTracerError(
            "Found a JAX Tracer object passed as an argument to a custom_vjp function "
            "in a position indicated by nondiff_argnums as non-differentiable. Tracers "
            "cannot be passed as non-differentiable arguments to custom_vjp functions; "
            "instead, nondiff_argnums should only be used for arguments that can't be "
            "or contain JAX tracers, e.g. function-valued arguments. In particular, "
            "array-valued arguments should typically not be indicated as "
            "nondiff_argnums."
        )


class BatchedOutput:
    """The form of what a mapped call and its rules return.

    Args:
      axis: the `MappedAxis`.
      dims: the mapped axis of each argument of the call, or None.

    Attributes:
      mapped: whether the results have the axis, in front; None as long as no argument
        is mapped, and neither the function nor a rule has run.
    """

    def __init__(self, axis, dims):
        self.axis = axis
        self.mapped = True if any(dim is not None for dim in dims) else None

    def of(self, outs, places):
        """Return results in this form.

        Raises:
          TypeError: if some are mapped, and those of the function were not.
        """
        found = any(place is not None for place in places)
        if self.mapped is None:
            self.mapped = found
        if found and not self.mapped:
            raise TypeError(
                "A custom derivative rule under vmap returned a value that depends on "
                "the example, where neither the arguments of the function do nor its "
                "result. Try passing what it depends on as an argument: what the "
                "rule closes over, or lax.axis_index."
            )
        if not self.mapped:
            return outs
        return [
            batch_dim_to_front(x, place, self.axis.size)
            for x, place in zip(outs, places)
        ]


def batch_function(fun, dims, axis, form=None):
    """Return a function for all examples at once; its results have the axis in front.

    Args:
      fun: a function from flat arguments to a list.
      dims: the mapped axis of each argument, or None.
      axis: the `MappedAxis`.
      form: the `BatchedOutput` of the results, if they may be shared by the examples.
    """
    form = form or BatchedOutput(axis, [0])

    def all_examples(*values):
        return form.of(*batch_flat_fun(fun, values, dims, axis))

    return all_examples


def map_trees(fun, trees, dims, axis, form=None):
    """Call a function of trees for all examples; return a tree, the axis in front.

    Args:
      fun: a function of trees of arrays that returns one; None holds no array.
      trees: its arguments.
      dims: for each of their leaves the mapped axis, or None.
      axis: the `MappedAxis`.
      form: the `BatchedOutput` of the results, if they may be shared by the examples.
    """
    leaves, in_tree = tree_flatten(trees)
    found = []

    def flat(*values):
        outs, out_tree = tree_flatten(fun(*in_tree.unflatten(values)))
        found.append(out_tree)
        return outs

    outs = batch_function(flat, dims, axis, form)(*leaves)
    return found[0].unflatten(outs)


class FlatRule:
    """A rule that comes with a call, as a function of flat lists; None is zero."""

    name = ""  # what the user calls it

    def __repr__(self):
        return self.name

    def batch_dims(self, dims, *trees):
        """Return the mapped axes of the arguments' leaves, from those of the call."""
        raise NotImplementedError

    def placed(self, found, dims, axis):
        """Return what it found for all examples, with the mapped axes where they go."""
        return found


class MappedRule(FlatRule):
    """A rule for all examples at once.

    Args:
      rule: the rule for one.
      dims: the mapped axes of the arguments of the call, or None.
      form: the `BatchedOutput` of the results of the call.
    """

    def __init__(self, rule, dims, form):
        self.rule, self.dims, self.form, self.name = rule, dims, form, rule.name
        self.batch_dims, self.placed = rule.batch_dims, rule.placed

    def __call__(self, *trees):
        form, dims = self.form, self.batch_dims(self.dims, *trees)
        if form.mapped is False:
            dims = [None] * len(dims)
        found = map_trees(self.rule, trees, dims, form.axis, form)
        return self.placed(found, self.dims, form.axis) if form.mapped else found


def callee_as_fun(call_jaxpr):
    """Return what is called as a function from flat arguments to a list."""
    written = isinstance(call_jaxpr, ClosedJaxpr)
    return jaxpr_as_fun(call_jaxpr) if written else call_jaxpr


def rule_operands(call_jaxpr, operands):
    """Return the operands of a call as its rules get them: a program has arrays."""
    written = isinstance(call_jaxpr, ClosedJaxpr)
    return list(map(as_array, operands)) if written else operands


def batched_call_rule(primitive, axis, args, dims, call_jaxpr, num_consts, **params):
    """Bind a call for all examples: what is called and its rules are mapped.

    Args:
      primitive: that of the call.
      axis: the `MappedAxis`.
      args, dims: the operands, and the mapped axis of each, or None.
      call_jaxpr: a function of flat arguments, or a `ClosedJaxpr`.
      num_consts: how many operands are no arguments for the rules.
      **params: the other parameters, rules among them.

    Returns:
      The results, and the mapped axis of each.
    """
    shared = all(dim is None for dim in dims) and axis.name is None
    if shared and isinstance(call_jaxpr, ClosedJaxpr):
        params |= {"call_jaxpr": call_jaxpr, "num_consts": num_consts}
        return primitive.bind_all(*args, **params), [None] * len(call_jaxpr.outvars)
    form = BatchedOutput(axis, dims)
    for key, value in params.items():
        if isinstance(value, FlatRule):
            params[key] = MappedRule(value, dims[num_consts:], form)
    program = batch_function(callee_as_fun(call_jaxpr), dims, axis, form)
    params |= {"call_jaxpr": program, "num_consts": num_consts}
    outs = primitive.bind_all(*args, **params)
    return outs, [0 if form.mapped else None] * len(outs)


def pp_call_eqn(eqn, writing):
    """Write the name first, and the number of constants only if there are any."""
    params = {"name": eqn.params["name"], **dict(sorted(eqn.params.items()))}
    if not params["num_consts"]:
        del params["num_consts"]
    return pp_eqn_default(eqn, writing, params)


# Zero tangents as rules of users see them: written out, or as an object.


class SymbolicZero:
    """A tangent or cotangent that is zero and is not written out.

    Args:
      aval: its `ShapedArray`.

    Reference: ``jax.custom_derivatives.SymbolicZero``.
    """

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(val):
        """Return the zero tangent of a primal."""
        return SymbolicZero(typeof(val).to_tangent_aval())

    def __repr__(self):
        return f"SymbolicZero({self.aval})"


@dataclasses.dataclass(slots=True)
class CustomVJPPrimal:
    """An argument of a forward rule that sees symbolic zeros.

    Attributes:
      value: the argument.
      perturbed: whether a derivative is taken with respect to it.

    Reference: ``jax.custom_derivatives.CustomVJPPrimal``.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return a tree of `CustomVJPPrimal` with the values in their places.

    Raises:
      TypeError: for a leaf of another type.

    Reference: ``jax.custom_derivatives.custom_vjp_primal_tree_values``.
    """
    return tree_map(_value, tree)


def _value(leaf):
    if type(leaf) is not CustomVJPPrimal:
        raise TypeError(f"unexpected leaf type {type(leaf)}")
    return leaf.value


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangents of a tree, as arrays or as `SymbolicZero`.

    Args:
      val: a tree of arrays and numbers.
      symbolic_zeros: whether to write no zeros out.

    Raises:
      TypeError: for a leaf that is neither.

    Reference: ``jax.custom_derivatives.zero_from_primal``.
    """
    return tree_map(
        lambda x: instantiate_for_rule(None, typeof(x), symbolic_zeros), val
    )


def instantiate_for_rule(tangent, aval, symbolic):
    """Return a tangent, or a cotangent, as a user's rule gets it.

    Args:
      tangent: an array, or None for zero.
      aval: the abstract value of the primal.
      symbolic: whether the rule asked for symbolic zeros.
    """
    if tangent is not None:
        return as_array(tangent)
    return SymbolicZero(aval.to_tangent_aval()) if symbolic else zeros_of_tangent(aval)


def zero_to_none(tangent):
    """Return None for what a rule returns in place of zeros, else the tangent."""
    is_zero = isinstance(tangent, SymbolicZero)
    return None if is_zero or getattr(tangent, "dtype", None) == float0 else tangent


def type_of_tangent(x):
    """Return the abstract value of what a rule returns as a tangent."""
    if isinstance(x, SymbolicZero):
        return x.aval
    if getattr(x, "dtype", None) == float0:
        return ShapedArray(x.shape, float0)
    return typeof(x)


# What derivative rules of users return: checks, with messages that show both sides.

JVP_RULE = (
    "Custom JVP rule {rule} for function {name} must produce a pair (list or tuple of "
    "length two) "
)
FWD_RULE = (
    "Custom VJP fwd rule {rule} for function {name} must produce a pair (list or tuple "
    "of length two) where the first element represents the primal output (equal to "
)
NO_PAIR = {
    "jvp": JVP_RULE + "representing primal and tangent outputs, but got {found}.",
    "vjp": FWD_RULE + "those of the custom_vjp-decorated function {name}) and the "
    "second element represents residuals (i.e. values stored from the forward pass for "
    "use on the backward pass), but instead of a pair the fwd rule {rule} produced "
    "{found}.",
}
OTHER_RESULT = {
    "jvp": JVP_RULE + "where the first element represents the primal output (equal in "
    "value to the output of the custom_jvp-decorated function {name}, and in "
    "particular {alike}), but instead the JVP rule output's first element had "
    "{what}:\n    {given}\nwhile the custom_jvp-decorated function {name} had output "
    "{what}:\n    {expected}",
    "vjp": FWD_RULE + "the output of the custom_vjp-decorated function {name}) and the "
    "second element represents residuals (i.e. values stored from the forward pass for "
    "use on the backward pass), but instead the fwd rule output's first element had "
    "{what}:\n    {given}\nwhile the custom_vjp-decorated function {name} had output "
    "{what}:\n    {expected}",
}


OPTIMIZE_REMAT_CONFLICT = (
    "remat optimization for custom_vjp does not support symbolic zeros"
)


class CustomVJPException(Exception):
    """A derivative is taken with respect to what a function with rules closes over.

    Reference: ``CustomVJPException`` in ``jax._src.interpreters.ad``.
    """


def raise_closed_over(kind, tangents):
    """Raise if a value that a function was not given moves.

    Args:
      kind: ``"jvp"`` or ``"vjp"``.
      tangents: those of the values; None for zero.
    """
    if any(tangent is not None for tangent in tangents):
        rules = "rule" if kind == "jvp" else "fwd and bwd rules"
        raise CustomVJPException(
            f"Detected differentiation of a custom_{kind} function with respect to a "
            f"closed-over value. That isn't supported because the custom "
            f"{kind.upper()} rule only specifies how to differentiate the "
            f"custom_{kind} function with respect to explicit input parameters. Try "
            f"passing the closed-over value into the custom_{kind} function as an "
            f"argument, and adapting the custom_{kind} {rules}."
        )


def check_pair(kind, rule, function, found):
    """Return the pair that a rule returned.

    Args:
      kind: ``"jvp"`` or ``"vjp"``.
      rule: what the rule is called.
      function: the `FlatFunction` that it is a rule of.
      found: what it returned.

    Raises:
      TypeError: if that is no pair.
    """
    if isinstance(found, (list, tuple)) and len(found) == 2:
        return found
    words = {"rule": rule, "name": function.name, "found": found}
    raise TypeError(NO_PAIR[kind].format(**words))


def check_result(kind, rule, function, result):
    """Return the leaves of the first result of a rule.

    If the function has not run, it learns their structure and their types.

    Raises:
      TypeError: if these are not those of the function's result.
    """
    outs, tree = tree_flatten(result)
    avals = list(map(typeof, outs))
    if function.out_tree is None:
        function.out_tree, function.out_avals = tree, avals
    words = {"rule": rule, "name": function.name}
    words["given"] = _types(tree, avals)
    words["expected"] = _types(function.out_tree, function.out_avals)
    message = OTHER_RESULT[kind]
    if tree != function.out_tree:
        alike = "of the same container/pytree structure"
        words |= {"what": "container/pytree structure", "alike": alike}
        raise TypeError(message.format(**words) + ".")
    if words["given"] != words["expected"]:
        alike = "with leaves of the same shape/dtype"
        words |= {"what": "shapes/dtypes of", "alike": alike}
        raise TypeError(message.format(**words))
    return outs


def _types(tree, avals):
    return str(tree.unflatten(map(aval_text, avals))).replace("'", "")


def check_structures(rule, function, out_tree, tangent_tree):
    """Raise if the two results of a forward rule are of different structures."""
    if out_tree != tangent_tree:
        raise TypeError(
            f"Custom JVP rule {rule} for function {function.name} must produce primal "
            "and tangent outputs with equal container (pytree) structures, but got "
            f"{out_tree} and {tangent_tree} respectively."
        )


def check_tangents(primals, tangents):
    """Raise if tangents do not fit results; the arguments are lists of avals."""
    wrong = [
        (aval_text(primal), aval_text(wanted), aval_text(given))
        for primal, given in zip(primals, tangents)
        if not same_types(wanted := primal.to_tangent_aval(), given)
    ]
    if wrong:
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with "
            "corresponding shapes and dtypes" + _disagreements(wrong, len(tangents))
        )


def same_types(one, other):
    """Return whether two abstract values have the same shape and dtype."""
    return (one.shape, one.dtype) == (other.shape, other.dtype)


def _disagreements(wrong, count):
    if count == 1:
        [(primal, wanted, given)] = wrong
        return f". Expected {wanted} (tangent type of {primal}) but got {given}."
    return ", but got:\n" + "\n".join(
        f"  primal {primal} with tangent {given}, expecting tangent {wanted}"
        for primal, wanted, given in wrong
    )


def spread_cotangents(in_tree, found):
    """Return what a backward rule returned, one for each leaf of the arguments.

    Args:
      in_tree: the structure of the tuple of arguments.
      found: a tuple (or list) with a tree for each; None in place of a subtree, or an
        array, stands for each of its leaves.

    Raises:
      TypeError: if it does not fit.
    """
    if isinstance(found, list) and len(found) == len(in_tree.children()):
        found = tuple(found)
    leaves, tree = tree_flatten(found, is_leaf=lambda x: x is None)
    try:
        if not isinstance(found, tuple):
            raise ValueError
        places = tree.flatten_up_to(in_tree.unflatten([object()] * in_tree.num_leaves))
    except ValueError:
        raise TypeError(
            "Custom VJP bwd rule must produce an output with the same container "
            "(pytree) structure as the args tuple of the primal function, and in "
            "particular must produce a tuple of length equal to the number of "
            "arguments to the primal function, but got bwd output structure "
            f"{tree_flatten(found)[1]} for primal input structure {in_tree}."
        ) from None
    pairs = zip(leaves, places)
    return [leaf for leaf, place in pairs for _ in tree_leaves(place)]


def checked_cotangents(function, found):
    """Return the cotangents that a backward rule returned, a list; None is zero.

    Args:
      function: the `FlatFunction` that it is a rule of.
      found: a tuple (or list) with a tree for each argument.

    Raises:
      TypeError: if its structure does not fit.
      ValueError: if a shape does not; the dtype of a cotangent may be another one.
    """
    cts = spread_cotangents(function.in_tree, found)
    for i, (aval, ct) in enumerate(zip(function.in_avals, cts)):
        if ct is None or not is_inexact(aval.dtype):
            cts[i] = None
        elif aval.shape != type_of_tangent(ct).shape:
            _refuse_cotangent(function.in_tree, i, aval, ct)
    return list(map(zero_to_none, cts))


def _refuse_cotangent(in_tree, i, wanted, ct):
    """Raise an error that shows a cotangent and the argument that it belongs to."""
    given = type_of_tangent(ct)
    path, _ = tree_leaves_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[i]
    if isinstance(ct, SymbolicZero):
        raise ValueError(
            "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does "
            "not match the corresponding input tangent shape/dtype: at output"
            f"{keystr(path)} the SymbolicZero had shape/dtype {aval_text(given)} while "
            f"the corresponding input had shape/dtype {aval_text(wanted)}. Consider "
            "just returning a None here instead of a SymbolicZero object."
        )
    raise ValueError(
        "Custom VJP bwd rule must produce an output with the same type as the args "
        f"tuple of the primal function, but at output{keystr(path)} the bwd rule "
        f"produced an output of type {aval_text(given)} corresponding to an input of "
        f"type {aval_text(wanted)}, so the shapes do not match"
    )


class JvpRule(FlatRule):
    """The rule of a user, for trees of arrays, as one of flat lists.

    Args:
      rule: called as ``rule(*static, primals, tangents)``; returns a pair of trees.
      function: the `FlatFunction`.
      symbolic_zeros: whether the rule sees zeros as `SymbolicZero`.
    """

    def __init__(self, rule, function, symbolic_zeros):
        self.rule, self.function, self.symbolic_zeros = rule, function, symbolic_zeros
        self.name = fun_name_of(rule)

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
        return outs, list(map(zero_to_none, slopes))

    def _written_out(self, primal, tangent):
        return instantiate_for_rule(tangent, typeof(primal), self.symbolic_zeros)

    def batch_dims(self, dims, primals, tangents):
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
        zeros = tree_map(zeros_like_tangent_aval, out)
        parts = [
            rule(tangent, out, *primals) if rule else zeros
            for tangent, rule in zip(tangents, jvps)
        ]
        return out, tree_map(lambda *ts: reduce(add_or_none, ts), *parts)

    return jvp
