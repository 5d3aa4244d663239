"""What has to agree: branches with each other, and the carry of a loop with itself.

Functions that agree are written down as the branches of one equation.

Reference: the errors of ``jax.lax.cond``, ``switch``, ``while_loop`` and ``scan``.
"""

# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax import lax
from minijax.arrays.dtypes import from_node, lattice_node
from minijax.arrays.lattice import join
from minijax.branches.rewiring import computed_only, with_common_inputs
from minijax.jitting.trace_cache import program_of
from minijax.lax.promotion import lift
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.call_names import argument_names
from minijax.pytrees.differences import differences
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import PyTreeDef, tree_leaves_with_path


def same_type(one, other):
    """Return whether two abstract values have one shape and one dtype, weak or not."""
    return (one.shape, one.dtype) == (other.shape, other.dtype)


def _alike(one, other):
    """Return whether two values have one type, and vary along the same mesh axes."""
    return same_type(one, other) and one.manual_axis_type is other.manual_axis_type


def check_branches(name, labels, results):
    """Raise if two branches return different trees, or arrays of different types.

    Args:
      name: of the function that was given the branches.
      labels: what its user calls each of them.
      results: for each of them the structure of its result, and its abstract values.

    Raises:
      TypeError: it names the leaves that differ by their paths.
    """
    for label, result in zip(labels[1:], results[1:]):
        _check_pair(name, labels[0], results[0], label, result)


def _check_pair(name, first, result, label, other_result):
    (tree, avals), (other, others) = result, other_result
    if other != tree:
        lines = differences(tree, _structure(other), exact=True, name="result")
        raise TypeError(
            f"{name} branch outputs must have the same pytree structure, but they "
            f"differ, that of {first} and that of {label}:{_listed(lines)}"
        )
    if not all(map(_alike, avals, others)):
        paths = [path for path, _ in tree_leaves_with_path(_structure(tree))]
        lines = [
            f"result{keystr(path)} is {one} from {first} and {two} from {label} "
            f"({_what_differs(one, two)})"
            for path, one, two in zip(paths, avals, others)
            if not _alike(one, two)
        ]
        raise TypeError(
            f"{name} branches must have equal output types but they differ:"
            f"{_listed(lines)}\n{_way_out(avals, others, _BRANCH)}"
        )


class _Leaf:
    """Stands for any array where only the structure counts."""

    def __repr__(self):
        return "an array"


_Leaf.__name__ = "Array"  # what a message calls its type


def _structure(tree):
    return tree.unflatten([_Leaf()] * tree.num_leaves)


def _listed(lines):
    return "".join(f"\n  {line}" for line in lines)


_BRANCH = "result of that branch", "Convert or reshape the results of a branch."
_CARRY = (
    "initial value",
    "The next step gets it: convert it in the step, or start with a value of the right "
    "type.",
)


def _way_out(ones, others, words):
    """Return what to do about types that differ; `words` are for axes and the rest."""
    where, advice = words
    more = {x for pair in zip(ones, others) for x in _more_axes(*pair)}
    if not more or not all(map(same_type, ones, others)):
        return advice
    names = ", ".join(map(repr, sorted(more, key=str)))
    return (
        f"Write minijax.lax.pcast(x, ({names},), to='varying') for the {where} x: it "
        "says that the devices may have different values."
    )


def _more_axes(one, other):
    return one.manual_axis_type.varying ^ other.manual_axis_type.varying


def _what_differs(one, two):
    kinds = {
        "shapes": one.shape != two.shape,
        "dtypes": one.dtype != two.dtype,
        "manual axis types": one.manual_axis_type is not two.manual_axis_type,
    }
    return f"the {' and '.join(kind for kind in kinds if kinds[kind])} differ"


class WrittenBranches(NamedTuple):
    """Functions that were written down as programs of one type.

    Attributes:
      programs: a tuple of `ClosedJaxpr`, without the results that all hand on.
      inputs: the operands of all of them: what they have captured, and their leaves.
      passed: for each result the place of the input that it is, or None.
      out_tree: the structure of the result.
    """

    programs: tuple
    inputs: list
    passed: list
    out_tree: PyTreeDef

    def result(self, outs):
        """Return the tree of all results, given those of a program."""
        outs, inputs = iter(outs), self.inputs
        leaves = [next(outs) if i is None else lift(inputs[i]) for i in self.passed]
        return self.out_tree.unflatten(leaves)


def write_branches(name, functions, labels, operands):
    """Return the `WrittenBranches` of functions of the same operands.

    Args:
      name: of the function that was given the branches.
      functions: the branches.
      labels: what its user calls each of them.
      operands: a tuple of trees.

    Raises:
      TypeError: if they return different things; see `check_branches`.
    """
    calls = [FlatCall(name, function, operands) for function in functions]
    written = [program_of(call, hoist=True) for call in calls]
    check_branches(name, labels, [(p.out_tree, p.closed.out_avals) for p in written])
    programs, captured = with_common_inputs(written)
    programs, passed = computed_only(programs)
    inputs = [*captured, *calls[0].leaves]
    return WrittenBranches(programs, inputs, passed, written[0].out_tree)


def promote_weak(leaves, in_avals, out_avals):
    """Convert those weak initial values that a step would make strong.

    Args:
      leaves: the initial values of a carry.
      in_avals: their abstract values.
      out_avals: those of the carry after one step.

    Returns:
      The list of values, and whether one of them was converted.
    """
    promoted = [
        lax.convert_element_type(leaf, _meeting_dtype(one, two))
        if one.weak_type and not same_type(one, two)
        else leaf
        for leaf, one, two in zip(leaves, in_avals, out_avals)
    ]
    return promoted, any(new is not old for new, old in zip(promoted, leaves))


def _meeting_dtype(*avals):
    return from_node(join(*(lattice_node(a.dtype, a.weak_type) for a in avals)))[0]


def check_carry(name, fun, in_tree, in_avals, out_tree, out_avals):
    """Raise if a step of a loop does not return what the next step can take.

    Args:
      name: of the loop function.
      fun: the user's function of one step, whose first parameter is the carry.
      in_tree, in_avals: the structure and the types of the carry that it gets.
      out_tree, out_avals: those of the carry that it returns.

    Raises:
      TypeError: it names the leaves that differ as the user's function does.
    """
    if in_tree != out_tree:
        [carry] = argument_names(fun, (0,), {})
        lines = differences(in_tree, _structure(out_tree), exact=True, name=carry)
        raise TypeError(
            f"{name} body function carry input and carry output must have the same "
            f"pytree structure, but they differ:{_listed(lines)}"
        )
    if not all(map(_alike, in_avals, out_avals)):
        names = argument_names(fun, (_structure(in_tree),), {})
        _refuse_types(name, names, in_avals, out_avals)


def _refuse_types(name, paths, in_avals, out_avals):
    lines = [
        f"{path} comes in as {one} and goes out as {two} ({_what_differs(one, two)})"
        for path, one, two in zip(paths, in_avals, out_avals)
        if not _alike(one, two)
    ]
    raise TypeError(
        f"{name} body function carry input and carry output must have equal types, "
        f"but they differ:{_listed(lines)}\n{_way_out(in_avals, out_avals, _CARRY)}"
    )
