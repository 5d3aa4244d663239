"""The columns of folds of windows: derivatives, batches, costs, kernels.

Reference: ``jax._src.lax.windowed_reductions``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.batching.rules import at_front, vmap_rules
from minijax.batching.trace import vmap
from minijax.core import impl_rules
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.forward.trace import jvp_flat
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.building import KernelBuilder
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import everywhere
from minijax.matmul.lowering import in_memory
from minijax.reverse.transposition import transpose_rules, transposes
from minijax.windows.geometry import lengths, phases_of
from minijax.windows.pooling import (
    IDENTITIES,
    combined,
    params_of,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_p,
    reduce_window_sum_p,
    sliding_of,
)
from minijax.windows.selections import select_and_gather_add_p, select_and_scatter_add_p
from minijax.windows.window_views import is_empty, load_windows, windows_in

jvp_rules[reduce_window_sum_p] = linear_rule(reduce_window_sum_p)


def _sum_transpose(ct, x, **params):
    sliding, shape = sliding_of(**params), x.aval.shape
    config = [
        (width - low - 1, n + low - out, stride - 1)
        for (n, width, out, (low, _)), stride in zip(
            lengths(sliding, shape), sliding.strides
        )
    ]
    ct = lax.pad(ct, typeof(ct).dtype.type(0), config)
    ones = (1,) * len(shape)
    back = sliding._replace(
        strides=sliding.base_dilation,
        padding=((0, 0),) * len(shape),
        base_dilation=ones,
    )
    return reduce_window_sum_p.bind(ct, **params_of(back))[0]


transposes(reduce_window_sum_p, _sum_transpose)


def _extreme_jvp(primitive, select_prim, primals, tangents, **params):
    results = primitive.bind(*primals, **params)
    how = {"select_prim": select_prim, **params}
    return results, select_and_gather_add_p.bind(tangents[0], *primals, **how)


for _primitive, _select in (
    (reduce_window_max_p, lax.ge_p),
    (reduce_window_min_p, lax.le_p),
):
    jvp_rules[_primitive] = partial(_extreme_jvp, _primitive, _select)
    transpose_rules.reasons[_primitive] = (
        "It is not linear: its tangent is that of the element which has won, and the "
        "primitive that takes it is transposed."
    )


def _program_jvp(primals, tangents, **params):
    """Differentiate the operations that a fold by a program is made of."""
    call = partial(impl_rules[reduce_window_p], **params)
    return jvp_flat(call, primals, tangents)


jvp_rules[reduce_window_p] = _program_jvp
transpose_rules.reasons[reduce_window_p] = (
    "Differentiation writes its operations down, and these are transposed."
)


def _selecting_jvp(primitive, primals, tangents, **params):
    """Carry on the tangent of the first operand; places do not move."""
    results = primitive.bind(*primals, **params)
    if tangents[0] is None:
        return results, [None]
    return results, primitive.bind(tangents[0], primals[1], **params)


def _gather_back(ct, tangents, operand, **params):
    sliding = sliding_of(**params)
    if max(*sliding.base_dilation, *sliding.window_dilation, 1) > 1:
        return impl_rules[select_and_scatter_add_p](ct, operand, **params)[0]
    params = {k: v for k, v in params.items() if "dilation" not in k}
    return select_and_scatter_add_p.bind(ct, operand, **params)[0]


def _scatter_back(ct, source, operand, select_prim, **params):
    params = params_of(sliding_of(**params))
    return select_and_gather_add_p.bind(ct, operand, select_prim=select_prim, **params)[
        0
    ]


for _primitive, _back in (
    (select_and_gather_add_p, _gather_back),
    (select_and_scatter_add_p, _scatter_back),
):
    jvp_rules[_primitive] = partial(_selecting_jvp, _primitive)
    transposes(_primitive, _back, None)


def window_batch(primitive):
    """Return the vmap rule: windows that do not extend along the axis of examples."""

    def rule(axis, args, dims, **params):
        args = [at_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return primitive.bind(*args, **_one_in_front(params)), [0]

    return rule


def _one_in_front(params):
    fronts = {"padding": ((0, 0),)}
    slides = "padding window_dimensions window_strides base_dilation window_dilation"
    return {
        name: (*fronts.get(name, (1,)), *value) if name in slides.split() else value
        for name, value in params.items()
    }


def _program_batch(axis, args, dims, **params):
    count = len(args) // 2
    if any(dim is not None for dim in dims[count:]):
        call = partial(impl_rules[reduce_window_p], **params)
        results = vmap(lambda *xs: call(*xs), tuple(dims), 0, axis_size=axis.size)(
            *args
        )
        return results, [0] * len(results)
    operands = [at_front(x, dim, axis.size) for x, dim in zip(args, dims[:count])]
    results = reduce_window_p.bind(*operands, *args[count:], **_one_in_front(params))
    return results, [0] * len(results)


for _primitive in (*IDENTITIES, select_and_gather_add_p, select_and_scatter_add_p):
    vmap_rules[_primitive] = window_batch(_primitive)
vmap_rules[reduce_window_p] = _program_batch


def window_cost(eqn):
    """Count an operation for each element of each window."""
    taps = math.prod(eqn.params["window_dimensions"])
    size = min(atom.aval.size for atom in (*eqn.invars[:1], *eqn.outvars))
    return {FLOPS: taps * size * len(eqn.outvars)} | _moved(eqn)


MANY = 64  # elements of a window


def lower_as_program(lowering, eqn, *operands):
    """Add the steps of the operations that a primitive is made of."""
    return lower_function(
        lowering, partial(impl_rules[eqn.primitive], **eqn.params), eqn, operands
    )


def lower_function(lowering, call, eqn, operands):
    """Add the steps of a function of the operands of an equation."""
    avals = [atom.aval for atom in eqn.invars]
    closed = ClosedJaxpr(*trace_to_jaxpr(lambda *xs: call(*xs), avals))
    return lowering.program(closed, operands)


def lower_fold(lowering, eqn, x):
    """Add the kernels of a fold of windows; return the view of its result."""
    [var], sliding = eqn.outvars, sliding_of(**eqn.params)
    identity, how = IDENTITIES[eqn.primitive]
    if math.prod(sliding.sizes) > MANY and how != "add":
        combine = {"max": lax.max, "min": lax.min}[how]
        return lower_function(lowering, doubled(combine, sliding, identity), eqn, [x])
    if x.dtype.kind == "b":
        how = {"max": "or", "min": "and"}[how]
    if not var.aval.size:
        return [everywhere(x.dtype.type(0), var.aval.shape)]
    out, rank = lowering.allocate(var.aval), var.aval.ndim
    x = in_memory(lowering, x, x.dtype)
    for phases in phases_of(sliding, x.shape):
        y, taps = windows_in(out, phases, 0), [phase.taps for phase in phases]
        k = KernelBuilder(eqn.primitive.name, (*y.shape, *taps))
        found = k.constant(identity(x.dtype), x.dtype)
        if not is_empty(phases):
            within = range(rank, 2 * rank)
            args = phases, (), range(rank), within, identity(x.dtype)
            found = k.fold(how, (*within,), load_windows(k, x, *args))
        lowering.run(k, (y, found))
    return [out]


def doubled(combine, sliding, identity):
    """Return a fold of windows as a function of the array."""

    def call(x):
        init = identity(typeof(x).dtype)
        return combined(lambda a, b: [combine(a[0], b[0])], [x], [init], sliding)

    return call


AS_PROGRAMS = (reduce_window_p, select_and_gather_add_p, select_and_scatter_add_p)
kernel_rules.update(dict.fromkeys(IDENTITIES, lower_fold))
kernel_rules.update(dict.fromkeys(AS_PROGRAMS, lower_as_program))
cost_rules.update(dict.fromkeys([*IDENTITIES, *AS_PROGRAMS], window_cost))
python_rules.update(dict.fromkeys([*IDENTITIES, *AS_PROGRAMS], write_evaluation))
