"""The pass pipeline: constant folding, algebra, data movement, known control flow."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, eval_rules, shape_rules
from minijax.arrays.devices import default_placement, host_device, ignore_float_errors
from minijax.arrays.dtypes import WIDE_DTYPES, dtype_kind
from minijax.arrays.numerics import (
    choose_in_contraction,
    lhs_free_axes,
    remove_axes,
    sizes_of_axes,
)
from minijax.arrays.transfer import device_put_p
from minijax.batching.vmap import ELEMENTWISE, primitives_named
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import while_p
from minijax.custom_derivatives.custom_jvp_vjp import stop_gradient_p
from minijax.jaxprs.jaxpr import JaxprEqn, Literal, Var
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jitting.compilation import canonicalization_hook
from minijax.kernels.lowering import jaxpr_passes
from minijax.lax.arithmetic import convert_element_type_p
from minijax.passes.loop_invariant_code_motion import (
    hoist_loop_invariants,
    hoist_scan_matmul,
    loop_jaxprs,
    rebind_loop,
    replace_jaxpr,
    split_loop_operands,
    used_vars,
)
from minijax.passes.rewriting import (
    INNER_JAXPR_RULES,
    broadcast_atom,
    broadcast_source,
    cast_atom,
    constant_atom,
    insert_eqn,
    literal,
    rewrite_pass,
    splat_value,
)
from minijax.passes.simplification import (
    CSE_RULES,
    IDENTITY_RULES,
    INLINING_RULES,
    atom_key,
    build_term,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fused_pass,
    inline_calls,
    inline_jaxpr,
)
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    eqn_has_effects,
    merge_lists,
    partition_list,
    select_where,
)
from minijax.rematerialization.policies import name_p
from minijax.scans.scan import scan_p
from minijax.scans.step import split_list_by_sizes

# Constant folding: what depends on known numbers alone, computed beforehand.

# Larger arrays are left alone.
LIMIT = 4096


def fold_constants(sweep, eqn):
    """A rule: numbers, in place of an equation all of whose operands are known."""
    if eqn.primitive not in eval_rules or not eqn.invars:
        return None
    for x in eqn.invars:
        if type(x) is not Literal and x not in sweep.constants:
            return fold_uniform(sweep, eqn)
    operands = [atom_value(sweep, x) for x in eqn.invars]
    if any(x is None for x in operands):
        return None
    size = sum(x.size for x in operands)
    if max(size, *[var.aval.size for var in eqn.outvars]) > LIMIT:
        return None
    if sum(var.aval.size for var in eqn.outvars) > size:
        return None
    results = evaluate_eqn(eqn, operands)
    pairs, here = zip(results, eqn.outvars), _place_of_numbers()
    return [constant_atom(sweep, ArrayImpl(x, var.aval, here)) for x, var in pairs]


def _place_of_numbers():
    """Return where NumPy's numbers may lie: by default, if that is a CPU."""
    place = default_placement()
    return place if place.device.platform == "cpu" else host_device().committed


def atom_value(sweep, atom):
    """Return the NumPy array that an atom stands for, or None."""
    if isinstance(atom, Literal):
        return np.asarray(atom.val, atom.aval.dtype)
    array = sweep.constants.get(atom)
    return array._numbers() if isinstance(array, ArrayImpl) else None


@ignore_float_errors
def evaluate_eqn(eqn, operands):
    """Return the list of an equation's results, NumPy arrays."""
    results = eval_rules[eqn.primitive](np, *operands, **eqn.params)
    results = results if isinstance(results, list) else [results]
    return [np.asarray(x, var.aval.dtype) for x, var in zip(results, eqn.outvars)]


# What keeps shapes, element by element.
UNIFORM = {*primitives_named(ELEMENTWISE), lax.select_n_p, lax.clamp_p}
UNIFORM.remove(lax.bitcast_convert_type_p)


def fold_uniform(sweep, eqn):
    """Return the results of an equation whose operands are one number each, or None."""
    if eqn.primitive not in UNIFORM:
        return None
    numbers = [splat_value(sweep, x) for x in eqn.invars]
    if None in numbers:
        return None
    return folded(sweep, eqn, [atom_value(sweep, number) for number in numbers])


def folded(sweep, eqn, operands):
    """Return an equation's result, computed from numbers, in a list."""
    [var] = eqn.outvars
    [x] = evaluate_eqn(eqn, operands)
    number = literal(x, var.aval.update(shape=()))
    return [broadcast_atom(sweep, number, var.aval.shape)]


REDUCTIONS = frozenset(
    primitives_named("""
    reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor
""")
)


def fold_reduction(sweep, eqn):
    """A rule: a number, in place of the reduction of equal known ones to a scalar."""
    [x], [var] = eqn.invars, eqn.outvars
    number = splat_value(sweep, x)
    if number is None or var.aval.shape or x.aval.size > LIMIT:
        return None
    return folded(sweep, eqn, [np.full(x.aval.shape, atom_value(sweep, number))])


def fold_scalar_op(sweep, primitive, *atoms):
    """Return what stands for a primitive applied to atoms that are one number each."""
    avals = shape_rules[primitive](*[x.aval for x in atoms])
    eqn = JaxprEqn([*atoms], list(map(Var, avals)), primitive, {})
    return fold_uniform(sweep, eqn)[0]


CONSTANT_FOLDING_RULES = [(None, fold_constants), (REDUCTIONS, fold_reduction)]


# Algebraic simplification by arithmetic of its own, besides the identities.


def simpler_power(sweep, eqn):
    """A rule: no power at all, for the exponents 0 and 1."""
    [x], y = eqn.invars, eqn.params["y"]
    if y == 1:
        return [x]
    return [build_term(sweep, 1, {}, x.aval)] if y == 0 else None


def multiply_instead(sweep, eqn):
    """A rule: multiplication by a power of two, in place of the division by one."""
    x, y = eqn.invars
    number = splat_value(sweep, y)
    if number is None or dtype_kind(number.aval.dtype) not in "hf":
        return None
    value = float(number.val)
    mantissa, exponent = math.frexp(value)
    if abs(mantissa) != 0.5 or not -14 < exponent < 15:
        return None
    factor = broadcast_atom(sweep, literal(1 / value, number.aval), y.aval.shape)
    return insert_eqn(sweep, lax.mul_p, x, factor)


def factor_and_number(sweep, eqn):
    """Return the operands of a product, or sum, the number behind; None if none is."""
    x, y = eqn.invars
    if splat_value(sweep, y) is None:
        x, y = y, x
    return None if splat_value(sweep, y) is None else (x, y)


def product_with_number(sweep, atom, primitive=lax.mul_p):
    """Return the two factors of an atom that is a real product with a number, or None.

    The number is the second. The primitive may be another one.
    """
    eqn = sweep.definitions.get(atom)
    if eqn is None or eqn.primitive is not primitive:
        return None
    return None if atom.aval.dtype.kind == "c" else factor_and_number(sweep, eqn)


def other_sign(sweep, eqn):
    """A rule: a product with a negated number, in place of a product negated."""
    found = product_with_number(sweep, eqn.invars[0])
    if found is None:
        return None
    x, y = found
    return insert_eqn(sweep, lax.mul_p, x, fold_scalar_op(sweep, lax.neg_p, y))


def negated_factor(sweep, eqn):
    """A rule: a product with a negated number, in place of one of what is negated."""
    found = factor_and_number(sweep, eqn)
    negation = found and sweep.definitions.get(found[0])
    if negation is None or negation.primitive is not lax.neg_p:
        return None
    if found[1].aval.dtype.kind == "c":
        return None
    number = fold_scalar_op(sweep, lax.neg_p, found[1])
    return insert_eqn(sweep, lax.mul_p, *negation.invars, number)


def join_numbers(sweep, eqn):
    """A rule for integers: one number, in place of two that are added or multiplied."""
    found = factor_and_number(sweep, eqn)
    if found is None or dtype_kind(found[1].aval.dtype) not in "iu":
        return None
    first = product_with_number(sweep, found[0], eqn.primitive)
    if first is None:
        return None
    number = fold_scalar_op(sweep, eqn.primitive, first[1], found[1])
    return insert_eqn(sweep, eqn.primitive, first[0], number)


STRETCHING = frozenset(
    primitives_named("""
    add add_any sub mul div rem max min nextafter eq ne lt le gt ge atan2 complex and
    or xor shift_left shift_right_logical shift_right_arithmetic pow
""")
)


def let_stretch(sweep, eqn):
    """A rule: a scalar as it is, in place of a scalar made as large as the others."""
    x, y = eqn.invars
    a, b = broadcast_source(sweep, x), broadcast_source(sweep, y)
    if a is x and b is y:
        return None
    if eqn.outvars[0].aval.shape not in (a.aval.shape, b.aval.shape):
        return None
    return insert_eqn(sweep, eqn.primitive, a, b, **eqn.params)


ALGEBRA = [
    ({lax.integer_pow_p}, simpler_power),
    IDENTITY_RULES,
    ({lax.div_p}, multiply_instead),
    ({lax.neg_p}, other_sign),
    ({lax.mul_p}, negated_factor),
    ({lax.add_p, lax.mul_p}, join_numbers),
    (STRETCHING, let_stretch),
]


# Operations that only move elements, and conversions: two in a row are often one.


def turn_once(sweep, eqn):
    """A rule for transposes: none where nothing moves, one in place of two."""
    [x], order = eqn.invars, eqn.params["permutation"]
    if order == tuple(range(len(order))):
        return [x]
    if inner := sweep.definition(x, lax.transpose_p):
        axes = tuple([inner.params["permutation"][axis] for axis in order])
        return insert_eqn(sweep, lax.transpose_p, *inner.invars, permutation=axes)
    if inner := sweep.definition(x, lax.broadcast_in_dim_p):
        places = inner.params["broadcast_dimensions"]
        axes = tuple([order.index(place) for place in places])
        if [*axes] == sorted(axes):
            return _broadcast(sweep, inner.invars[0], eqn, axes)
    return None


def _broadcast(sweep, x, eqn, places):
    """Stretch `x` to the shape of the result of an equation."""
    params = {"shape": eqn.outvars[0].aval.shape, "broadcast_dimensions": places}
    return insert_eqn(sweep, lax.broadcast_in_dim_p, x, **params)


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
    return insert_eqn(sweep, lax.reshape_p, source, new_sizes=shape)


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
    return insert_eqn(sweep, lax.rev_p, x, dimensions=left) if left else [x]


REARRANGING = frozenset(
    {lax.reshape_p, lax.squeeze_p, lax.transpose_p, lax.rev_p, lax.slice_p}
)


def move_nothing(sweep, eqn):
    """A rule: equal elements stay what they are, wherever they go."""
    [x] = eqn.invars
    scalar = broadcast_source(sweep, x)
    return None if scalar is x else _broadcast(sweep, scalar, eqn, ())


def cut_once(sweep, eqn):
    """A rule for slices: none of everything, one in place of two, or of one part."""
    [x], box = eqn.invars, slice_bounds(eqn)
    if eqn.outvars[0].aval.shape == x.aval.shape:
        return [x]
    if inner := sweep.definition(x, lax.slice_p):
        pairs = zip(slice_bounds(inner), box)
        return _cut(sweep, inner.invars[0], [_joined(*pair) for pair in pairs])
    if inner := sweep.definition(x, lax.concatenate_p):
        return _cut_part(sweep, inner, box)
    return None


def slice_bounds(eqn):
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
    return insert_eqn(sweep, lax.slice_p, x, **params, strides=strides)


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
    return insert_eqn(sweep, lax.concatenate_p, *parts, dimension=axis)


def pad_nothing(sweep, eqn):
    """A rule: no padding without a width."""
    return eqn.invars[:1] if not any(map(any, eqn.params["padding_config"])) else None


def only_itself(sweep, eqn):
    """A rule: what a copy is a copy of."""
    return eqn.invars


WIDTHS = {"float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8)}
WIDTHS |= {"float64": (53, 11)}


def is_exact_cast(wide, narrow):
    """Return whether a dtype has all numbers of another, each exactly."""
    kinds = dtype_kind(wide), dtype_kind(narrow)
    if wide == narrow or narrow.kind == "b":
        return True
    if wide in WIDE_DTYPES:
        return False
    narrow = WIDE_DTYPES.get(narrow, narrow)  # which holds all of its numbers
    if kinds[0] in "iu":
        return kinds[1] in "iu" and _within(np.iinfo(narrow), np.iinfo(wide))
    if kinds[0] == "c":
        wide = np.empty(0, wide).real.dtype
        narrow = np.empty(0, narrow).real.dtype if kinds[1] == "c" else narrow
        return is_exact_cast(wide, narrow)
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
    if inner is None or not is_exact_cast(x.aval.dtype, inner.invars[0].aval.dtype):
        return None
    old = inner.invars[0].aval.dtype
    old_kind, kind, new_kind = map(dtype_kind, (old, x.aval.dtype, new))
    alike = (old_kind in "iu") == (kind in "iu")
    if new_kind in "iu" and not alike and not is_exact_cast(new, old):
        return None
    return insert_eqn(sweep, lax.convert_element_type_p, *inner.invars, **eqn.params)


EXACT_REDUCTIONS = frozenset({lax.reduce_max_p, lax.reduce_min_p, lax.reduce_and_p})
EXACT_REDUCTIONS |= {lax.reduce_or_p, lax.reduce_xor_p}


def reduce_once(sweep, eqn):
    """A rule for reductions: none of single elements, and none of a transpose."""
    [x], axes = eqn.invars, eqn.params["axes"]
    kind = x.aval.dtype.kind
    exact = eqn.primitive in EXACT_REDUCTIONS and kind != "c" or kind in "iu"
    if exact and all(x.aval.shape[axis] == 1 for axis in axes):
        return insert_eqn(sweep, lax.reshape_p, x, new_sizes=eqn.outvars[0].aval.shape)
    if inner := sweep.definition(x, lax.transpose_p):
        order = inner.params["permutation"]
        left = remove_axes(order, axes)
        if [*left] == sorted(left):
            axes = tuple([order[axis] for axis in axes])
            return insert_eqn(sweep, eqn.primitive, *inner.invars, axes=axes)
    return None


MOVEMENT_RULES = [
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
    return insert_eqn(sweep, lax.dot_general_p, *operands, **params)


def untransposed(sweep, x, contracting, batch):
    """Return an operand of a product without its transpose, and its axes.

    The transpose stays if the free axes would come in another order.
    """
    inner = sweep.definition(x, lax.transpose_p)
    if inner is None:
        return x, contracting, batch
    order = inner.params["permutation"]
    free = [order[axis] for axis in lhs_free_axes(x.aval.ndim, contracting, batch)]
    if free != sorted(free):
        return x, contracting, batch
    axes = [tuple([order[axis] for axis in some]) for some in (contracting, batch)]
    return inner.invars[0], *axes


CONTRACTION_RULES = {lax.dot_general_p}, turn_operands


# Branches that are known, and branches and loops that are handed less.


def narrowed(programs, operands, *places):
    """Return programs with fewer inputs, and for each old one whether it is kept.

    An input goes if no program reads it, if it is a literal, or the same as another.

    Args:
      programs: list of `ClosedJaxpr`, which are all given the same.
      operands: what they are given.
      *places: ranges of what may go; within a range, one may stand for another.
    """
    less = [with_operands(closed, operands, places) for closed in programs]
    read = {i for closed in less for i in places_read(closed)}
    may_go = set().union(*places)
    kept = [i not in may_go or i in read for i in range(len(operands))]
    if all(kept):
        return programs, kept
    return [replace_jaxpr(p, select_where(kept, p.invars)) for p in less], kept


def with_operands(closed, operands, places):
    """Return a program that has literals inside, and reads equal operands once."""
    names, first = {}, {}
    given = [*zip(closed.invars, operands)]
    for some in places:
        for var, x in given[some.start : some.stop]:
            if isinstance(x, Literal):
                names[var] = Literal(x.val, var.aval)
            elif first.setdefault((some, x), var) is not var:
                names[var] = first[some, x]
    return replace_jaxpr(closed, closed.invars, names=names)


def places_read(closed):
    """Return the places of the inputs that a program reads or returns."""
    read = used_vars(closed)
    return [place for place, var in enumerate(closed.invars) if var in read]


def fold_constant_cond(sweep, eqn):
    """A rule for cond: the branch itself, if there is nothing to choose."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    if isinstance(index, Literal):
        return inline_jaxpr(sweep, branches[int(index.val)], operands)
    return inline_jaxpr(sweep, branches[0], operands) if len({*branches}) == 1 else None


def prune_cond(sweep, eqn):
    """A rule for cond: without what no branch reads, and what all of them hand on."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    handed = [
        *map(
            common_atom,
            zip(*[forwarded_outputs(branch, operands) for branch in branches]),
        )
    ]
    computed = [x is None for x in handed]
    less = [
        replace_jaxpr(b, b.invars, select_where(computed, b.outvars)) for b in branches
    ]
    less, kept = narrowed(less, operands, range(len(operands)))
    if all(computed) and all(kept):
        return None
    invars = [index, *select_where(kept, operands)]
    outvars = select_where(computed, eqn.outvars)
    new = eqn.replace(invars=invars, outvars=outvars, params={"branches": (*less,)})
    results = iter(sweep.add(new) if outvars or eqn_has_effects(new) else ())
    return [next(results) if x is None else x for x in handed]


def forwarded_outputs(closed, operands):
    """Return for each result what it is outside; None for one that is computed."""
    outside = dict(zip(closed.invars, operands))
    return [x if isinstance(x, Literal) else outside.get(x) for x in closed.outvars]


def common_atom(atoms):
    """Return the one atom that all of these are, or None."""
    return (
        atoms[0] if None not in atoms and len(set(map(atom_key, atoms))) == 1 else None
    )


def fold_short_scan(sweep, eqn):
    """A rule for a scan: no loop for one step, and nothing for none."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    if length > 1:
        return None
    consts, carry, xs = split_loop_operands(eqn, eqn.invars)
    ys = eqn.outvars[len(carry) :]
    if length == 0:
        zeros = [literal(0, y.aval.update(shape=())) for y in ys]
        return carry + [
            broadcast_atom(sweep, x, y.aval.shape) for x, y in zip(zeros, ys)
        ]
    rows = [insert_eqn(sweep, lax.squeeze_p, x, dimensions=(0,))[0] for x in xs]
    results = inline_jaxpr(sweep, step, [*consts, *carry, *rows])
    carry, rows = split_list_by_sizes(results, len(carry))
    return carry + [broadcast_rows(sweep, row, 1) for row in rows]


def broadcast_rows(sweep, atom, length):
    """Return what stands for an array with an atom in each row."""
    shape = (length, *atom.aval.shape)
    params = {"shape": shape, "broadcast_dimensions": tuple(range(1, len(shape)))}
    return insert_eqn(sweep, lax.broadcast_in_dim_p, atom, **params)[0]


def prune_loop_operands(sweep, eqn):
    """A rule for loops: without constants, and rows, that need not be handed over."""
    parts, programs = split_loop_operands(eqn, eqn.invars), loop_jaxprs(eqn)
    count, less, operands = len(programs), [], []
    carry, *xs = parts[count:]
    for program, consts in zip(programs, parts):
        given = sum([consts, carry, *xs], [])
        ends = len(consts), len(consts) + len(carry)
        places = range(ends[0]), range(ends[1], len(given))
        [program], kept = narrowed([program], given, *places)
        less.append(program)
        operands.append(select_where(kept[: ends[0]], consts))
    operands += [carry, *[select_where(kept[ends[1] :], rows) for rows in xs]]
    same = [*map(len, operands)] == [*map(len, parts)]
    return None if same else rebind_loop(sweep, eqn, less, operands, eqn.outvars)


def prune_scan_carry(sweep, eqn):
    """A rule for a scan: no carry that does not change, or not after the first step."""
    step = eqn.params["jaxpr"]
    consts, before, _ = split_loop_operands(eqn, step.invars)
    after, ys = split_list_by_sizes(step.outvars, len(before))
    read, fixed = used_vars(step), {*consts}
    known = dict(zip(step.invars, eqn.invars))
    changes = [
        a is not b and (b in read or not (a in fixed or isinstance(a, Literal)))
        for a, b in zip(after, before)
    ]
    if all(changes):
        return None
    operands = _with_more_consts(split_loop_operands(eqn, eqn.invars), changes)
    invars = sum(_with_more_consts(split_loop_operands(eqn, step.invars), changes), [])
    kept = changes + [True] * len(ys)
    gone, left = partition_list(kept, step.outvars)
    less = sweep.inside.settled(replace_jaxpr(step, invars, left))
    outvars = select_where(kept, eqn.outvars)
    results = rebind_loop(sweep, eqn, [less], operands, outvars)
    return merge_lists(kept, [known.get(x, x) for x in gone], results)


def _with_more_consts(parts, changes):
    consts, carry, xs = parts
    fixed, carry = partition_list(changes, carry)
    return [[*consts, *fixed], carry, xs]


def prune_scan_stacks(sweep, eqn):
    """A rule for a scan: no stacks of rows that are there already, or all the same."""
    step, length = eqn.params["jaxpr"], eqn.params["length"]
    outside = dict(zip(step.invars, eqn.invars))
    consts, carry, rows = split_loop_operands(eqn, step.invars)
    carried, ys = split_list_by_sizes(step.outvars, len(carry))
    known, first = {*rows, *consts}, {}
    kept = [
        not (isinstance(y, Literal) or y in known) and first.setdefault(y, i) == i
        for i, y in enumerate(ys)
    ]
    if all(kept):
        return None
    kept_ys = select_where(kept, ys)
    outs, stacks = split_list_by_sizes(eqn.outvars, len(carry))
    less = replace_jaxpr(step, step.invars, [*carried, *kept_ys])
    outvars = [*outs, *select_where(kept, stacks)]
    less, operands = sweep.inside.settled(less), split_loop_operands(eqn, eqn.invars)
    results = rebind_loop(sweep, eqn, [less], operands, outvars)
    outs, stacks = split_list_by_sizes(results, len(carry))
    made = dict(zip(kept_ys, stacks)) | {row: outside[row] for row in rows}
    return outs + [
        made[y] if y in made else broadcast_rows(sweep, outside.get(y, y), length)
        for y in ys
    ]


def fold_dead_while(sweep, eqn):
    """A rule for while: the initial carry, if the condition never holds."""
    [going] = eqn.params["cond_jaxpr"].outvars
    stops = isinstance(going, Literal) and not going.val
    return split_loop_operands(eqn, eqn.invars)[2] if stops else None


def prune_while_carry(sweep, eqn):
    """A rule for while: what each round hands on as it is, is a constant."""
    test, body = loop_jaxprs(eqn)
    first, second, carry = split_loop_operands(eqn, eqn.invars)
    inside = body.invars[len(second) :]
    changes = [a is not b for a, b in zip(inside, body.outvars)]
    if all(changes):
        return None
    fixed, moving = partition_list(changes, carry)
    outvars = select_where(changes, body.outvars)
    body = replace_jaxpr(body, _fixed_first(body, len(second), changes), outvars)
    test = replace_jaxpr(test, _fixed_first(test, len(first), changes))
    programs = list(map(sweep.inside.settled, (test, body)))
    operands = [[*fixed, *first], [*fixed, *second], moving]
    outvars = select_where(changes, eqn.outvars)
    results = rebind_loop(sweep, eqn, programs, operands, outvars)
    return merge_lists(changes, fixed, results)


def _fixed_first(closed, num_consts, changes):
    fixed, moving = partition_list(changes, closed.invars[num_consts:])
    return [*fixed, *closed.invars[:num_consts], *moving]


# The pass pipeline: all rewriting rules in their order.

BRANCHES = [({cond_p}, fold_constant_cond), ({cond_p}, prune_cond)]
SCANS = [
    ({scan_p}, rule)
    for rule in (
        fold_short_scan, prune_loop_operands, prune_scan_carry, prune_scan_stacks,
        hoist_loop_invariants, hoist_scan_matmul,
    )
]  # fmt: skip
WHILES = [
    ({while_p}, rule)
    for rule in (
        fold_dead_while,
        prune_loop_operands,
        prune_while_carry,
        hoist_loop_invariants,
    )
]

# From names to functions of a `ClosedJaxpr` that return one which means the same.
passes = {
    "inlining": inline_calls,
    "algebra": rewrite_pass(INNER_JAXPR_RULES, *ALGEBRA),
    "rearranging": rewrite_pass(INNER_JAXPR_RULES, *MOVEMENT_RULES),
    "contractions": rewrite_pass(INNER_JAXPR_RULES, CONTRACTION_RULES),
    "branches": rewrite_pass(INNER_JAXPR_RULES, *BRANCHES),
    "loops": rewrite_pass(INNER_JAXPR_RULES, *SCANS, *WHILES),
    "constant folding": rewrite_pass(INNER_JAXPR_RULES, *CONSTANT_FOLDING_RULES),
    "common subexpressions": eliminate_common_subexpressions,
    "dead code": eliminate_dead_code,
}
simplify = fused_pass(
    *(INLINING_RULES, INNER_JAXPR_RULES, *BRANCHES, *SCANS, *WHILES),
    *(*CONSTANT_FOLDING_RULES, *ALGEBRA, *MOVEMENT_RULES, CONTRACTION_RULES, CSE_RULES),
)
jaxpr_passes.value = simplify


VIEWS = {lax.broadcast_in_dim_p, lax.reshape_p, lax.squeeze_p, lax.transpose_p}


def truths_and_views(sweep, atom):
    """Return the truths that an atom is, converted, or None; and the views of them."""
    views = []
    while (eqn := sweep.definitions.get(atom)) and eqn.primitive in VIEWS:
        views.append(eqn)
        atom = eqn.invars[0]
    conversion = sweep.definition(atom, convert_element_type_p)
    [source] = [atom] if conversion is None else conversion.invars
    return (source if source.aval.dtype == bool else None), views


def truths_behind(sweep, atom):
    """Return the truths that an atom is, converted to floats and moved; None if not."""
    truths, views = truths_and_views(sweep, atom)
    if truths is None:
        return None
    for eqn in reversed(views):
        [truths] = insert_eqn(sweep, eqn.primitive, truths, **eqn.params)
    return truths


def mul_bool_to_select(sweep, eqn):
    """A rule: the float or 0, in place of a product of a float with truths."""
    [result] = eqn.outvars
    if dtype_kind(result.aval.dtype) not in "hfc":
        return None
    for factor, other in (eqn.invars, eqn.invars[::-1]):
        truths = truths_behind(sweep, factor)
        if truths is not None:
            zero = literal(0, other.aval.update(shape=()))
            parts = truths, zero, other
            parts = [broadcast_atom(sweep, x, result.aval.shape) for x in parts]
            [chosen] = insert_eqn(sweep, lax.select_n_p, *parts)
            return [cast_atom(sweep, chosen, result.aval)]
    return None


def dot_bool_to_mul(sweep, eqn):
    """A rule: a sum of products of elements, where bools choose in a contraction."""
    [result] = eqn.outvars
    contracting, batch = eqn.params["dimension_numbers"]
    found = [truths_and_views(sweep, x)[0] or x for x in eqn.invars]
    shapes = [x.aval.shape for x in eqn.invars]
    ranks = map(len, shapes)
    free = [*map(lhs_free_axes, ranks, contracting, batch)]
    rows, columns = map(sizes_of_axes, shapes, free)
    summed = sizes_of_axes(shapes[0], contracting[0])
    one, other = [x.aval.dtype for x in found]
    if not choose_in_contraction(one, other, rows, columns, summed):
        return None
    product = result.aval.update(shape=(*result.aval.shape, *summed), weak_type=False)
    first, last, end = len(batch[0]), len(result.aval.shape), len(product.shape)
    second, axes = first + len(free[0]), tuple(range(last, end))
    places = [(*range(second), *axes), (*range(first), *range(second, end))]
    factors = [
        place_axes(sweep, product, x, (*b, *f, *c), at)
        for x, b, f, c, at in zip(eqn.invars, batch, free, contracting, places)
    ]
    [products] = insert_eqn(sweep, lax.mul_p, *factors)
    [total] = insert_eqn(sweep, lax.reduce_sum_p, products, axes=axes)
    return [cast_atom(sweep, total, result.aval)]


def place_axes(sweep, aval, atom, order, places):
    """Return an atom of another type, whose axes come in an order, at given places."""
    truths = truths_behind(sweep, atom)
    atom = atom if truths is None else truths
    [x] = insert_eqn(sweep, lax.transpose_p, atom, permutation=order)
    x = cast_atom(sweep, x, aval.update(shape=x.aval.shape))
    params = {"shape": aval.shape, "broadcast_dimensions": places}
    return insert_eqn(sweep, lax.broadcast_in_dim_p, x, **params)[0]


choices = rewrite_pass(
    INNER_JAXPR_RULES,
    ({lax.mul_p}, mul_bool_to_select),
    ({lax.dot_general_p}, dot_bool_to_mul),
)
TAKE_BOOLS = {convert_element_type_p, lax.dot_general_p}


@weakref_memoize
def converts_truths(closed):
    """Return whether a program, or one in it, makes floats of bools."""
    return any(
        (eqn.primitive in TAKE_BOOLS and any(x.aval.dtype == bool for x in eqn.invars))
        or any(map(converts_truths, jaxprs_in_params(eqn.params)))
        for eqn in closed.eqns
    )


canonicalization_hook.value = lambda closed: (
    choices(closed) if converts_truths(closed) else closed
)
