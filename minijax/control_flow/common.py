"""What branches and loops share: rewired programs, agreement of types, selection.

Rules for control flow need one program with its inputs in another order, with inputs
that it ignores, or without some of its results.

Functions that agree are written down as the branches of one equation.

References: the errors of ``jax.lax.cond``, ``switch``, ``while_loop``, ``scan``.
"""

# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: trace_branches (7c830947).

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import (
    ShapedArray,
    def_shape_and_impl,
    dtype_lattice_join,
    typeof,
)
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    dtype_kind,
    dtype_name,
    dtype_of_lattice_node,
    is_canonical_dtype,
    lattice_node,
)
from minijax.batching.vmap import broadcast_batch_dim, move_one_axis, vmap_rules
from minijax.callbacks.callback import debug_callback_p, debug_print_p
from minijax.core import Primitive, Tracer
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import weak_type_converter
from minijax.jitting.compilation import trace_call, user_out_avals
from minijax.lax.arithmetic import astype
from minijax.lax.reductions import as_array_operand
from minijax.pytrees.api_util import FlatCall, argument_names
from minijax.pytrees.argument_checks import is_ref, read_refs, refs_in, write_refs
from minijax.pytrees.registry import keystr, structure_differences
from minijax.pytrees.tree_util import PyTreeDef, tree_leaves_with_path
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    effect_rules,
    scatter_by_mask,
    select_where,
    trace_flat_fun,
    transpose_jaxpr,
)
from minijax.reverse_mode.backward_pass import transpose_rules

# Programs whose inputs and results stand in other places than they were written in.


def closed_jaxpr_with_io(closed, inputs, results=None):
    """Return a program with other inputs and results.

    Args:
      closed: a `ClosedJaxpr`.
      inputs: for each new input its place among the old ones, or the `ShapedArray` of
        one that the program ignores.
      results: places among the old results; None for all of them.
    """
    everything = tuple(range(len(closed.outvars)))
    inputs = tuple(inputs)
    results = everything if results is None else tuple(results)
    if (inputs, results) == (tuple(range(len(closed.invars))), everything):
        return closed
    return _rewired(closed, inputs, results)


@weakref_memoize
def _rewired(closed, inputs, results):
    invars = [
        Var(place) if isinstance(place, ShapedArray) else closed.invars[place]
        for place in inputs
    ]
    outvars = [closed.outvars[place] for place in results]
    jaxpr = closed.jaxpr.replace(invars=invars, outvars=outvars)
    return ClosedJaxpr(jaxpr, closed.consts)


def join_branch_consts(programs):
    """Give programs the same inputs in front: all that one of them has captured.

    Args:
      programs: a list of `Program`, each with the values that it has captured.

    Returns:
      The list of `ClosedJaxpr`, and the list of the captured values.
    """
    captured = {id(x): x for program in programs for x in program.captured}
    joined = []
    for closed, own, *_ in programs:
        places = {id(x): place for place, x in enumerate(own)}
        front = [places.get(key, typeof(x)) for key, x in captured.items()]
        joined.append(
            closed_jaxpr_with_io(closed, [*front, *range(len(own), len(closed.invars))])
        )
    return joined, list(captured.values())


def forwarded_inputs(closed):
    """Return, for each result, which input it is; None for one that is computed."""
    places = {var: place for place, var in enumerate(closed.invars)}
    return [places.get(atom) for atom in closed.outvars]


def agreed(places):
    """Return the place that all programs name, or None."""
    return places[0] if len(set(places)) == 1 else None


def drop_forwarded_outputs(programs):
    """Return programs without the results that all of them hand on, and their inputs.

    Returns:
      A tuple of `ClosedJaxpr`, and for each of the old results the place of the input
      that it is, or None for one that the new programs return.
    """
    passed = list(map(agreed, zip(*map(forwarded_inputs, programs))))
    computed = [i for i, place in enumerate(passed) if place is None]
    inputs = range(len(programs[0].invars))
    return tuple(
        [closed_jaxpr_with_io(program, inputs, computed) for program in programs]
    ), passed


@weakref_memoize
def batch_jaxpr_axes(closed, axis, dims, places):
    """Return the program of all examples, with the mapped axes of results in place.

    Args:
      closed: a `ClosedJaxpr`.
      axis: the `MappedAxis`.
      dims: for each input its mapped axis, or None.
      places: for each result the place of its mapped axis; None where it has none.
    """
    program, found = batch_jaxpr(closed, axis, dims)

    def placed(*values):
        outs = jaxpr_as_fun(program)(*values)
        spots = zip(outs, found, places)
        return [move_bdim(out, dim, place, axis.size) for out, dim, place in spots]

    return trace_flat_fun(placed, program.in_avals)


def move_bdim(x, dim, place, size):
    """Return `x` with its mapped axis `dim` at `place`; None stands for no axis."""
    if place is None:
        return x
    return (
        broadcast_batch_dim(x, place, size)
        if dim is None
        else move_one_axis(x, dim, place)
    )


def zeros_of_aval(aval):
    """Return the zeros of an abstract value; a scalar needs no operation."""
    if not is_canonical_dtype(aval.dtype):
        zero = lax.full(aval.shape, astype(0, aval.dtype, aval.weak_type))
        return weak_type_converter.value(zero, aval)
    zero = np.zeros((), aval.dtype)[()]
    zero = zero.item() if aval.weak_type else zero
    zero = lax.broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero
    return weak_type_converter.value(zero, aval)


def any_per_position(flags):
    """Return, of a tuple of flags for each program, those that any of them has."""
    return tuple(map(any, zip(*flags)))


def transpose_branches(programs, linear, given):
    """Return the transposes of programs, all with results for the same inputs.

    Args:
      programs: a sequence of `ClosedJaxpr` of one type.
      linear: for each of their inputs whether they are linear in it.
      given: the types of the cotangents, as `cotangent_avals` returns them.

    Returns:
      A tuple of `ClosedJaxpr`, and for each linear input whether a cotangent arrives.
    """
    pairs = [transpose_jaxpr(program, linear, given) for program in programs]
    arrives = any_per_position([arrived for _, arrived in pairs])
    avals = select_where(arrives, select_where(linear, programs[0].in_avals))
    filled = [
        _fill_zeros(program, tuple(select_where(arrives, made)), tuple(avals))
        for program, made in pairs
    ]
    return tuple(filled), arrives


@weakref_memoize
def _fill_zeros(closed, made, avals):
    """Return a program with zeros among its results.

    Args:
      closed: a `ClosedJaxpr`.
      made: for each result whether `closed` makes it; the others are zeros.
      avals: the types of all results.
    """

    def program(*args):
        outs = scatter_by_mask(made, jaxpr_as_fun(closed)(*args))
        return [zeros_of_aval(a) if out is None else out for a, out in zip(avals, outs)]

    return trace_flat_fun(program, closed.in_avals)


def with_occurrence_numbers(avals):
    """Return pairs of each type and how often it came before."""
    seen = Counter()
    pairs = []
    for aval in avals:
        pairs.append((aval, seen[aval]))
        seen[aval] += 1
    return pairs


def residual_slots(groups):
    """Find slots for values of which each group has others.

    Args:
      groups: for each group the list of the types of its values.

    Returns:
      The types of the slots, and for each group the slots of its values. Values of one
      type in different groups share a slot.
    """
    keys = [with_occurrence_numbers(group) for group in groups]
    slots = list(dict.fromkeys(key for group in keys for key in group))
    places = [tuple(map(slots.index, group)) for group in keys]
    return tuple([aval for aval, _ in slots]), places


empty_p = Primitive("empty2")
def_shape_and_impl(
    empty_p,
    lambda dtype: [ShapedArray((), dtype)],
    lambda xp, dtype: xp.zeros((), dtype),
)

vmap_rules.reasons[empty_p] = "It has no operands, so no example differs."
jvp_rules.reasons[empty_p] = "It has no operands, so it has no tangent."
transpose_rules.reasons[empty_p] = "It has no operands that a cotangent could go to."


@weakref_memoize
def write_residual_slots(known, count, sources, slots, places):
    """Return a known program that returns a value for every slot.

    Args:
      known: the `ClosedJaxpr` of a `Split`.
      count: how many of its results are no residuals.
      sources: where its residuals are, among its inputs and results.
      slots: the types of all slots.
      places: the slot of each residual. The others get a value that is never read.
    """

    def program(*args):
        outs = jaxpr_as_fun(known)(*args)
        found, filled = [*args, *outs], list(map(_empty, slots))
        for source, place in zip(sources, places):
            filled[place] = found[source]
        return outs[:count] + filled

    return trace_flat_fun(program, known.in_avals)


def _empty(aval):
    if aval.dtype in EXTENDED_DTYPES:
        return lax.full(aval.shape, 0, aval.dtype)
    scalar = empty_p.bind(dtype=aval.dtype)
    return lax.broadcast_in_dim(scalar, aval.shape, ()) if aval.shape else scalar


def unify_residuals(parts):
    """Return the known programs and the unknown ones, with slots between them."""
    avals = [part.unknown.in_avals[: len(part.sources)] for part in parts]
    slots, places = residual_slots(avals)
    count = parts[0].out_unknown.count(False)
    pairs = list(zip(parts, places))
    known = [
        write_residual_slots(p.known, count, p.sources, slots, own) for p, own in pairs
    ]
    unknown = [read_residual_slots(p.unknown, slots, own) for p, own in pairs]
    return tuple(known), tuple(unknown)


def read_residual_slots(unknown, slots, places):
    """Return an unknown program that is given all slots and reads its own."""
    front = [places.index(i) if i in places else aval for i, aval in enumerate(slots)]
    return closed_jaxpr_with_io(
        unknown, [*front, *range(len(places), len(unknown.invars))]
    )


# What has to agree: branches with each other, and the carry of a loop with itself.


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
        lines = structure_differences(
            tree, _structure(other), exact=True, name="result"
        )
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
      forwarded: for each result the place of the input that it is, or None.
      out_tree: the structure of the result.
    """

    programs: tuple
    inputs: list
    forwarded: list
    out_tree: PyTreeDef

    def result(self, outs):
        """Return the tree of all results, given those of a program."""
        outs, inputs = iter(outs), self.inputs
        leaves = [
            next(outs) if i is None else as_array_operand(inputs[i])
            for i in self.forwarded
        ]
        return self.out_tree.unflatten(leaves)


@weakref_memoize
def _with_handed_on(closed, inputs, results):
    """Return a program with other inputs and results; ~i is its new input i."""
    closed = closed_jaxpr_with_io(closed, inputs)
    outvars = [closed.invars[~i] if i < 0 else closed.outvars[i] for i in results]
    return closed.replace(jaxpr=closed.jaxpr.replace(outvars=outvars))


def thread_refs(program, refs, place, out_place):
    """Return a program of which references are inputs and results like others.

    Args:
      program: a `TracedProgram`.
      refs: the references; those that it has not captured it hands on.
      place: how many inputs come before them, besides captured ones.
      out_place: how many results come before them; None if they are not returned.
    """
    if not refs:
        return program
    captured, used = program.captured, refs_in(program.captured)
    kept = [i for i, x in enumerate(captured) if not (is_ref(x) and x in refs)]
    places = {id(x): i for i, x in enumerate(captured)}
    given = [places.get(id(x), x._aval) for x in refs]
    rest = range(len(captured), len(program.closed.invars))
    inputs = (*kept, *rest[:place], *given, *rest[place:])
    first, count = len(kept) + place, program.out_tree.num_leaves
    finals = [
        count + used.index(x) if x in used else ~(first + i) for i, x in enumerate(refs)
    ]
    results = range(count)
    if out_place is not None:
        results = [*results[:out_place], *finals, *results[out_place:]]
    closed = _with_handed_on(program.closed, inputs, tuple(results))
    return program._replace(closed=closed, captured=[captured[i] for i in kept])


class WritingTree(NamedTuple):
    """The structure of a result whose last leaves are written to references first."""

    refs: list
    tree: PyTreeDef

    def unflatten(self, leaves):
        """Write, and return the tree of the others."""
        return self.tree.unflatten(write_refs(self.refs, leaves))


def trace_branches(name, functions, labels, operands):
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
    written = [trace_call(call, hoist=True) for call in calls]
    check_branches(name, labels, [(p.out_tree, user_out_avals(p)) for p in written])
    refs = list(dict.fromkeys(x for p in written for x in refs_in(p.captured)))
    leaves, tree = calls[0].leaves, written[0].out_tree
    written = [thread_refs(p, refs, len(leaves), tree.num_leaves) for p in written]
    programs, captured = join_branch_consts(written)
    programs, passed = drop_forwarded_outputs(programs)
    inputs = [*captured, *leaves, *read_refs(refs)]
    writing: Any = WritingTree(refs, tree)
    return WrittenBranches(programs, inputs, passed, writing)


def promote_weak_typed_inputs(leaves, in_avals, out_avals):
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
    return dtype_of_lattice_node(
        dtype_lattice_join(*(lattice_node(a.dtype, a.weak_type) for a in avals))
    )[0]


def check_carry_type(name, fun, in_tree, in_avals, out_tree, out_avals):
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
        lines = structure_differences(
            in_tree, _structure(out_tree), exact=True, name=carry
        )
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


# Choose among the results of a batch (select), and check what a user chooses by.

# Primitives whose effect may also happen for an example that did not ask for it.
DEBUG_PRIMITIVES: set = {debug_callback_p, debug_print_p}


def select_by_index(which, *cases):
    """Select among arrays by `which`, which has the first of their axes."""
    shape = typeof(cases[0]).shape
    if typeof(which).ndim != len(shape):
        which = lax.broadcast_in_dim(which, shape, range(typeof(which).ndim))
    return lax.select_n(which, *cases)


def raise_if_io_effect(what, *programs):
    """Raise if programs do more outside than print, where it could not be undone."""
    if any(map(does_io, programs)):
        raise NotImplementedError(
            f"Effects on the world (io_callback) are not supported in {what}: under "
            "vmap it runs for examples that did not ask for it. Take the effect out of "
            "it, or map over the examples with lax.map."
        )


def does_io(jaxpr):
    """Return whether a program has an effect besides printing what it computes."""
    return any(
        (eqn.primitive in effect_rules and eqn.primitive not in DEBUG_PRIMITIVES)
        or any(map(does_io, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


def scalar_predicate(pred):
    """Return a predicate as a boolean scalar."""
    if pred is None or callable(pred) or isinstance(pred, Sequence):
        raise TypeError(f"cond: Pred must be a scalar, got {pred!r}.")
    aval = typeof(pred)
    if aval.shape:
        raise TypeError(
            f"cond: Pred must be a scalar, got one of shape {aval.shape}. To "
            "choose element by element there is jnp.where; to ask whether all or any "
            "hold, jnp.all and jnp.any."
        )
    if dtype_kind(aval.dtype) == "x" or aval.dtype.kind not in "biuf":
        name = dtype_name(aval.dtype)
        raise TypeError(f"cond: no predicate is of dtype {name}: compare it.")
    return pred if dtype_kind(aval.dtype) == "b" else pred != 0


def is_concrete(x):
    """Return whether Python can ask `x` for its value."""
    return not isinstance(x, Tracer) or x.concrete() is not None


UNSET = object()


def canonical_cond_args(true_fun, false_fun, operands, operand):
    """Return both functions and all operands; accept the two older ways of calling."""
    if not (callable(true_fun) and callable(false_fun)):
        return _of_pairs(true_fun, false_fun, *operands)
    return true_fun, false_fun, operands_or_keyword("cond", operands, operand)


def _of_pairs(x, true_fun, *more):
    """Accept ``cond(pred, x, true_fun, y, false_fun)``, as JAX does."""
    if not (callable(true_fun) and len(more) == 2 and callable(more[1])):
        raise TypeError("cond: true_fun and false_fun must be callable.")
    y, false_fun = more
    return lambda x, y: true_fun(x), lambda x, y: false_fun(y), (x, y)


def operands_or_keyword(name, operands, operand):
    """Return the operands, or the only one that was given by name."""
    if operand is UNSET:
        return operands
    if operands:
        raise TypeError(f"{name}: pass operands by position or `operand`, not both.")
    return (operand,)
