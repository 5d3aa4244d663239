"""Operations that only move elements, and conversions: two in a row are often one."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.checks import free_axes, without
from minijax.arrays.dtypes import kind_of
from minijax.arrays.transfer import device_put_p
from minijax.forgetting.policies import name_p
from minijax.own_rules.stopped_gradients import stop_gradient_p
from minijax.passes.sweeping import put, scalar_in


def turn_once(sweep, eqn):
    """A rule for transposes: none where nothing moves, one in place of two."""
    [x], order = eqn.invars, eqn.params["permutation"]
    if order == tuple(range(len(order))):
        return [x]
    if inner := sweep.definition(x, lax.transpose_p):
        axes = tuple([inner.params["permutation"][axis] for axis in order])
        return put(sweep, lax.transpose_p, *inner.invars, permutation=axes)
    if inner := sweep.definition(x, lax.broadcast_in_dim_p):
        places = inner.params["broadcast_dimensions"]
        axes = tuple([order.index(place) for place in places])
        if [*axes] == sorted(axes):
            return _broadcast(sweep, inner.invars[0], eqn, axes)
    return None


def _broadcast(sweep, x, eqn, places):
    """Stretch `x` to the shape of the result of an equation."""
    params = {"shape": eqn.outvars[0].aval.shape, "broadcast_dimensions": places}
    return put(sweep, lax.broadcast_in_dim_p, x, **params)


def stretch_once(sweep, eqn):
    """A rule for broadcasts: none where nothing is stretched, one in place of two."""
    [x], places = eqn.invars, eqn.params["broadcast_dimensions"]
    if x.aval.shape == eqn.params["shape"]:
        return [x]
    if inner := sweep.definition(x, lax.broadcast_in_dim_p):
        first = inner.params["broadcast_dimensions"]
        axes = tuple([places[axis] for axis in first])
        return _broadcast(sweep, inner.invars[0], eqn, axes)
    return None


KEEPING_ORDER = frozenset({lax.reshape_p, lax.squeeze_p, lax.broadcast_in_dim_p})


def reshape_once(sweep, eqn):
    """A rule for what leaves all elements in order: once is enough."""
    [x], shape = eqn.invars, eqn.outvars[0].aval.shape
    if x.aval.shape == shape:
        return [x]
    source = same_elements(sweep, x)
    if source is x or eqn.outvars[0].aval.size != x.aval.size:
        return None
    if source.aval.shape == shape:
        return [source]
    return put(sweep, lax.reshape_p, source, new_sizes=shape)


def same_elements(sweep, atom):
    """Return the atom with the same elements in the same order, before a reshape."""
    eqn = sweep.definitions.get(atom)
    if eqn is None or eqn.primitive not in KEEPING_ORDER:
        return atom
    [x] = eqn.invars
    return x if x.aval.size == atom.aval.size and x.aval.shape else atom


def reverse_once(sweep, eqn):
    """A rule for reversals: along axes with two elements at least, and once each."""
    [x], axes = eqn.invars, eqn.params["dimensions"]
    left = tuple([axis for axis in axes if x.aval.shape[axis] > 1])
    if inner := sweep.definition(x, lax.rev_p):
        [x], before = inner.invars, inner.params["dimensions"]
        left = tuple(sorted({*left} ^ {*before}))
    elif left == axes:
        return None
    return put(sweep, lax.rev_p, x, dimensions=left) if left else [x]


REARRANGING = frozenset(
    {lax.reshape_p, lax.squeeze_p, lax.transpose_p, lax.rev_p, lax.slice_p}
)


def move_nothing(sweep, eqn):
    """A rule: equal elements stay what they are, wherever they go."""
    [x] = eqn.invars
    scalar = scalar_in(sweep, x)
    return None if scalar is x else _broadcast(sweep, scalar, eqn, ())


def cut_once(sweep, eqn):
    """A rule for slices: none of everything, one in place of two, or of one part."""
    [x], box = eqn.invars, box_of(eqn)
    if eqn.outvars[0].aval.shape == x.aval.shape:
        return [x]
    if inner := sweep.definition(x, lax.slice_p):
        pairs = zip(box_of(inner), box)
        return _cut(sweep, inner.invars[0], [_joined(*pair) for pair in pairs])
    if inner := sweep.definition(x, lax.concatenate_p):
        return _cut_part(sweep, inner, box)
    return None


def box_of(eqn):
    """Return start, number and stride of a slice along each axis."""
    strides = eqn.params["strides"] or (1,) * eqn.invars[0].aval.ndim
    return [*zip(eqn.params["start_indices"], eqn.outvars[0].aval.shape, strides)]


def _joined(outer, inner):
    (start, _, stride), (first, number, step) = outer, inner
    return start + first * stride, number, stride * step


def _cut(sweep, x, box):
    box = [each if each[1] else (0, 0, 1) for each in box]  # nothing lies in any array
    starts, numbers, strides = (tuple(column) for column in zip(*box))
    ends = [a + max(n - 1, 0) * step + (n > 0) for a, n, step in box]
    strides = None if {*strides} <= {1} else strides
    params = {"start_indices": starts, "limit_indices": tuple(ends)}
    return put(sweep, lax.slice_p, x, **params, strides=strides)


def _cut_part(sweep, joined, box):
    """Return a slice of the one operand in which it lies, or None if it is several."""
    axis, end = joined.params["dimension"], 0
    start, number, step = box[axis]
    for part in joined.invars:
        begin, end = end, end + part.aval.shape[axis]
        if number and begin <= start and start + (number - 1) * step < end:
            inside = [*box[:axis], (start - begin, number, step), *box[axis + 1 :]]
            return _cut(sweep, part, inside)
    return None


def join_once(sweep, eqn):
    """A rule for concatenations: of what is not empty, and not one within another."""
    axis, parts = eqn.params["dimension"], []
    for x in eqn.invars:
        inner = sweep.definition(x, lax.concatenate_p)
        inside = inner is not None and inner.params["dimension"] == axis
        parts += inner.invars if inside else [x] if x.aval.shape[axis] else []
    if len(parts) == 1:
        return parts
    if not parts or parts == eqn.invars:
        return None
    return put(sweep, lax.concatenate_p, *parts, dimension=axis)


def pad_nothing(sweep, eqn):
    """A rule: no padding without a width."""
    return eqn.invars[:1] if not any(map(any, eqn.params["padding_config"])) else None


def only_itself(sweep, eqn):
    """A rule: what a copy is a copy of."""
    return eqn.invars


WIDTHS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8)}
WIDTHS |= {"float64": (53, 11)}


def holds(wide, narrow):
    """Return whether a dtype has all numbers of another, each exactly."""
    kinds = kind_of(wide), kind_of(narrow)
    if wide == narrow or narrow.kind == "b":
        return True
    if kinds[0] in "iu":
        return kinds[1] in "iu" and _within(np.iinfo(narrow), np.iinfo(wide))
    if kinds[0] == "c":
        wide = np.empty(0, wide).real.dtype
        narrow = np.empty(0, narrow).real.dtype if kinds[1] == "c" else narrow
        return holds(wide, narrow)
    if kinds[0] not in "hf" or kinds[1] == "c":
        return False
    digits, exponent = WIDTHS[wide.name]
    if kinds[1] in "iu":
        return np.iinfo(narrow).bits <= digits
    return digits >= WIDTHS[narrow.name][0] and exponent >= WIDTHS[narrow.name][1]


def _within(inner, outer):
    return outer.min <= inner.min and inner.max <= outer.max


def convert_once(sweep, eqn):
    """A rule for conversions: none to the same dtype, one in place of two."""
    [x], new = eqn.invars, eqn.params["new_dtype"]
    if x.aval.dtype == new:
        return [x]
    inner = sweep.definition(x, lax.convert_element_type_p)
    if inner is None or not holds(x.aval.dtype, inner.invars[0].aval.dtype):
        return None
    old = inner.invars[0].aval.dtype
    alike = (old.kind in "iu") == (x.aval.dtype.kind in "iu")
    if new.kind in "iu" and not alike and not holds(new, old):
        return None
    return put(sweep, lax.convert_element_type_p, *inner.invars, **eqn.params)


EXACT = frozenset({lax.reduce_max_p, lax.reduce_min_p, lax.reduce_and_p})
EXACT |= {lax.reduce_or_p, lax.reduce_xor_p}
REDUCTIONS = EXACT | {lax.reduce_sum_p, lax.reduce_prod_p}


def reduce_once(sweep, eqn):
    """A rule for reductions: none of single elements, and none of a transpose."""
    [x], axes = eqn.invars, eqn.params["axes"]
    kind = x.aval.dtype.kind
    exact = eqn.primitive in EXACT and kind != "c" or kind in "iu"
    if exact and all(x.aval.shape[axis] == 1 for axis in axes):
        return put(sweep, lax.reshape_p, x, new_sizes=eqn.outvars[0].aval.shape)
    if inner := sweep.definition(x, lax.transpose_p):
        order = inner.params["permutation"]
        left = without(order, axes)
        if [*left] == sorted(left):
            axes = tuple([order[axis] for axis in axes])
            return put(sweep, eqn.primitive, *inner.invars, axes=axes)
    return None


MOVES = [
    (REARRANGING, move_nothing),
    ({lax.transpose_p}, turn_once),
    ({lax.broadcast_in_dim_p}, stretch_once),
    (KEEPING_ORDER, reshape_once),
    ({lax.rev_p}, reverse_once),
    ({lax.slice_p}, cut_once),
    ({lax.concatenate_p}, join_once),
    ({lax.pad_p}, pad_nothing),
    ({lax.copy_p, stop_gradient_p, name_p, device_put_p}, only_itself),
    ({lax.convert_element_type_p}, convert_once),
    (REDUCTIONS, reduce_once),
]


def turn_operands(sweep, eqn):
    """A rule: axes of what was transposed, in place of axes of the transpose."""
    contracting, batch = eqn.params["dimension_numbers"]
    sides = [
        untransposed(sweep, x, *axes)
        for x, *axes in zip(eqn.invars, contracting, batch)
    ]
    operands = [side[0] for side in sides]
    if operands == eqn.invars:
        return None
    numbers = tuple([tuple([side[i] for side in sides]) for i in (1, 2)])
    params = eqn.params | {"dimension_numbers": numbers}
    return put(sweep, lax.dot_general_p, *operands, **params)


def untransposed(sweep, x, contracting, batch):
    """Return an operand of a product without its transpose, and its axes.

    The transpose stays if the free axes would come in another order.
    """
    inner = sweep.definition(x, lax.transpose_p)
    if inner is None:
        return x, contracting, batch
    order = inner.params["permutation"]
    free = [order[axis] for axis in free_axes(x.aval.ndim, contracting, batch)]
    if free != sorted(free):
        return x, contracting, batch
    axes = [tuple([order[axis] for axis in some]) for some in (contracting, batch)]
    return inner.invars[0], *axes


CONTRACTIONS = {lax.dot_general_p}, turn_operands
