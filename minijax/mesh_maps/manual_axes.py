"""Values that vary: along which axes of a mesh the devices have different values.

Inside a checked `shard_map` each type says so. Where an operand varies less than
another, the equation `pvary` says that it varies, too; its transpose is a sum.

Reference: ``check_vma`` of ``jax.shard_map``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

import numpy as np

from minijax.arrays.array import shape_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.batching.collectives import pmax_p, pmin_p, psum_p
from minijax.batching.exchanges import all_gather_p, all_to_all_p, reduce_scatter_p
from minijax.batching.named_axes import axis_index_p, axis_index_shape
from minijax.batching.rules import vmap_rules
from minijax.branches.while_loops import while_p, while_shape
from minijax.core import Primitive, current_trace, impl_rules, set_current_trace
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forgetting.programs import stage
from minijax.forgetting.remembering import remembered
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.forward.trace import tangent_completers
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jaxprs.latest import fitted
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.jaxprs.result_types import own_manual_axes
from minijax.jaxprs.staging_api import AxisTrace
from minijax.kernels.program_steps import kernel_rules
from minijax.lax.creation import alike

pvary_p: Primitive = Primitive("pvary")


class MeshAxis(NamedTuple):
    """An axis of a mesh, inside of a program that runs on each of its devices.

    Args:
      name: of the axis.
      size: the number of devices along it.
      checked: whether types say which values vary along it.
    """

    name: object
    size: int
    checked: bool


def inside_mesh(shape, names, checked):
    """Return a trace in which the axes of a mesh have names.

    Args:
      shape: dictionary from names to sizes.
      names: which of them are known inside.
      checked: whether types say which values vary.
    """
    trace = current_trace()
    for name, size in shape.items():
        if name in names:
            trace = AxisTrace(trace, MeshAxis(name, size, checked))
    return trace


def mesh_axes(trace):
    """Return the `MeshAxis` records along a chain of traces, the innermost last."""
    axes = []
    while trace is not None:
        axis = getattr(trace, "axis", None)
        axes += [axis] if type(axis) is MeshAxis else []
        trace = trace.parent
    return axes[::-1]


def checked_names(trace):
    """Return the names of the axes for which types say what varies, in mesh order."""
    return [axis.name for axis in mesh_axes(trace) if axis.checked]


def varying(x):
    """Return the set of axes along which a value varies."""
    return typeof(x).manual_axis_type.varying


def checked_of(primitive, args, axis_name, axis_index_groups=None, **params):
    """Return the checked axes of a collective, or raise if an operand half varies."""
    names = {*axis_name}.intersection(checked_names(current_trace()))
    if names and axis_index_groups and primitive is psum_p:
        raise NotImplementedError(
            "psum with axis_index_groups varies from group to group, which the types "
            "of a checked shard_map do not say: give the groups an axis of the mesh "
            "of their own, or pass check_vma=False."
        )
    for x in args:
        some = names & varying(x)
        if primitive is psum_p and some and some != names:
            raise ValueError(
                f"{primitive} over the axes {axis_name} was given {typeof(x)}, which "
                f"varies along {sorted(some)} and not along {sorted(names - some)}. "
                f"Use minijax.lax.pcast(x, {tuple(sorted(names - some))}, "
                "to='varying') first, or name fewer axes."
            )
    return names


def vary(x, names):
    """Return a value as one that varies along some more axes of a checked mesh."""
    more = set(names) - varying(x)
    if not more:
        return x
    ordered = [name for name in checked_names(current_trace()) if name in more]
    return pvary_p.bind(x, axes=tuple(ordered))[0] if ordered else x


def _pvary_shape(x, axes):
    kind = x.manual_axis_type
    return [x.update(manual_axis_type=kind.update(varying=kind.varying | {*axes}))]


shape_rules[pvary_p] = _pvary_shape
own_manual_axes.add(pvary_p)
impl_rules[pvary_p] = lambda x, axes: [x]
jvp_rules[pvary_p] = linear_rule(pvary_p)
vmap_rules[pvary_p] = lambda axis, args, dims, axes: (
    pvary_p.bind(*args, axes=axes),
    list(dims),
)
python_rules[pvary_p] = write_evaluation
kernel_rules[pvary_p] = lambda lowering, eqn, x: [x]


def as_expected(args, params):
    """Let operands of programs vary as the programs' inputs do."""
    expected = [set(varying(x)) for x in args]
    for offset, variables in _inputs(params, len(args)):
        for names, var in zip(expected[offset:], variables):
            names |= var.aval.manual_axis_type.varying
    return [vary(x, names) for x, names in zip(args, expected)]


def _inputs(params, count):
    """Yield the inputs of programs in parameters, and where their operands begin."""
    before = params.get("cond_nconsts", 0)
    for key, value in params.items():
        for program in value if isinstance(value, tuple) else [value]:
            variables = getattr(program, "invars", [])
            if key == "cond_jaxpr":
                yield 0, variables[:before]
                yield before + params["body_nconsts"], variables[before:]
            else:
                yield count - len(variables), variables


def _index_shape(axis_name):
    checked = checked_names(current_trace())
    axes = NO_MANUAL_AXES.update(varying={x for x in axis_name if x in checked})
    return [ShapedArray((), np.int32, manual_axis_type=axes)]


shape_rules.supersede(axis_index_p, axis_index_shape, _index_shape)
own_manual_axes.add(axis_index_p)


def _write_fold(eqn, writing):
    """Write a reduction with JAX's parameters; a checked psum has another name."""
    names, [x] = eqn.params["axis_name"], eqn.invars
    checked = eqn.primitive is psum_p and x.aval.manual_axis_type.varying
    groups = {"axis_index_groups": eqn.params.get("axis_index_groups")}
    shown = {"axes": names} | ({} if checked else groups)
    document = write_plainly(eqn, writing, shown)
    name = "psum_invariant" if checked else eqn.primitive.name
    return (*document[:2], name, *document[3:])


def _write_exchange(eqn, writing):
    """Write an exchange with JAX's parameters."""
    params, one = eqn.params, eqn.primitive in (all_to_all_p, axis_index_p)
    names = params["axis_name"][0] if one and len(params["axis_name"]) == 1 else None
    params = params if names is None else params | {"axis_name": names}
    if eqn.primitive is all_to_all_p:
        params = {key: params[key] for key in params if key != "axis_size"}
    if eqn.primitive is not axis_index_p:
        params = {"axis_index_groups": None} | params
    return write_plainly(eqn, writing, dict(sorted(params.items())))


print_rules.update(dict.fromkeys((psum_p, pmax_p, pmin_p), _write_fold))
for _moving in (all_gather_p, all_to_all_p, reduce_scatter_p, axis_index_p):
    print_rules[_moving] = _write_exchange


def _decided(shape, deciding):
    """Return a shape rule: results also vary along the axes of what decides."""

    def rule(*avals, **params):
        outs, names = shape(*avals, **params), deciding(avals, params)
        if not names:
            return outs
        kinds = [x.manual_axis_type for x in outs]
        kinds = [kind.update(varying=kind.varying | names) for kind in kinds]
        return [x.update(manual_axis_type=kind) for x, kind in zip(outs, kinds)]

    return rule


def _of_condition(avals, params):
    [keep_going] = params["cond_jaxpr"].out_avals
    return keep_going.manual_axis_type.varying


shape_rules.supersede(while_p, while_shape, _decided(while_shape, _of_condition))


def varied(branches, names):
    """Return branches whose operands and results vary along the axes of the choice.

    Else the transpose of a branch would hold a sum over devices that take another one.
    """
    return tuple([_varied_branch(branch, names) for branch in branches])


@remembered
def _varied_branch(branch, names):
    kinds = [aval.manual_axis_type for aval in branch.in_avals]
    kinds = [kind.update(varying=kind.varying | names) for kind in kinds]
    pairs = zip(branch.in_avals, kinds)

    def program(*flat):
        return [vary(out, names) for out in jaxpr_as_fun(branch)(*flat)]

    return stage(program, [x.update(manual_axis_type=kind) for x, kind in pairs])


def _fitted(x, like):
    """Return a value that varies along the axes of a type: more, or summed over some.

    A cotangent is one number for each device where its variable is one for all: then
    the variable's cotangent is their sum.
    """
    kind, mine = (
        getattr(getattr(y, "aval", y), "manual_axis_type", NO_MANUAL_AXES)
        for y in (like, x)
    )
    if mine is kind:
        return x
    if extra := mine.varying - kind.varying:
        order = [n for n in checked_names(current_trace()) if n in extra]
        x = psum_p.bind(x, axis_name=tuple(order))[0] if order else x
    return vary(x, kind.varying)


fitted.value = _fitted

alike.append(lambda x, aval: vary(x, aval.manual_axis_type.varying))


def _vary_as_primal(trace, primal, tangent):
    """Return a tangent that varies as its primal: the transpose sums where it begins.

    Of `u + v`, where only `v` moves and only `u` varies, the tangent is that of `v`.
    """
    kind = getattr(primal, "aval", primal)
    names = getattr(kind, "manual_axis_type", NO_MANUAL_AXES).varying
    if not names or names <= varying(tangent):
        return tangent
    with set_current_trace(trace.parent):
        return vary(tangent, names)


tangent_completers.append(_vary_as_primal)
