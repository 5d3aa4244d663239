"""What derivative rules of users return: checks, with messages that show both sides.

Reference: ``_flatten_jvp``, ``_flatten_fwd``, ``_flatten_bwd`` in
``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.own_rules.symbolic_zeros import (
    SymbolicZero,
    none_if_zero,
    tangent_aval,
    type_of_tangent,
)
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_flatten, tree_leaves, tree_leaves_with_path
from minijax.reverse.backwards import spell

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


NOT_BOTH = "remat optimization for custom_vjp does not support symbolic zeros"


class CustomVJPException(Exception):
    """A derivative is taken with respect to what a function with rules closes over.

    Reference: ``CustomVJPException`` in ``jax._src.interpreters.ad``.
    """


def refuse_closed_over(kind, tangents):
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
    return str(tree.unflatten(map(spell, avals))).replace("'", "")


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
        (spell(primal), spell(wanted), spell(given))
        for primal, given in zip(primals, tangents)
        if not alike(wanted := tangent_aval(primal), given)
    ]
    if wrong:
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with "
            "corresponding shapes and dtypes" + _disagreements(wrong, len(tangents))
        )


def alike(one, other):
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
    return list(map(none_if_zero, cts))


def _refuse_cotangent(in_tree, i, wanted, ct):
    """Raise an error that shows a cotangent and the argument that it belongs to."""
    given = type_of_tangent(ct)
    path, _ = tree_leaves_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[i]
    if isinstance(ct, SymbolicZero):
        raise ValueError(
            "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does "
            "not match the corresponding input tangent shape/dtype: at output"
            f"{keystr(path)} the SymbolicZero had shape/dtype {spell(given)} while the "
            f"corresponding input had shape/dtype {spell(wanted)}. Consider just "
            "returning a None here instead of a SymbolicZero object."
        )
    raise ValueError(
        "Custom VJP bwd rule must produce an output with the same type as the args "
        f"tuple of the primal function, but at output{keystr(path)} the bwd rule "
        f"produced an output of type {spell(given)} corresponding to an input of type "
        f"{spell(wanted)}, so the shapes do not match"
    )
