"""Elementary functions of vectors, and the loops that may have lanes."""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.elementary_functions import real_functions as elementary
from minijax.elementary_functions.scalar_functions import ScalarFunction, slow_paths
from minijax.kernels.ir import FoldCombine, Loop, Store, is_scan, scalar_ops
from minijax.kernels.loop_nests import Node, backward_slice
from minijax.llvm.instructions import (
    NOINLINE,
    FunctionBuilder,
    cached_until_redefined,
    llvm_constant,
    llvm_type,
    splat,
    vector_type,
)

# Elementary functions of vectors: the text of functions that callers contain.


def emit_nodes(f, nodes, names, lanes):
    """Write the nodes of a function, and note what they are called in `names`."""
    for node in nodes:
        args = [names[arg] for arg in node.args]
        if node.op == "constant":
            literal = llvm_constant(node.detail)
            names[node] = splat(llvm_type(node.dtype), literal, lanes)
        else:
            dtype = node.args[-1].dtype
            names[node] = f.operation(node.op, args, dtype, node.dtype, lanes)


def emit_function_call(f, op, args, dtype, lanes):
    """Write the call of an elementary function; return None where there is none."""
    found = elementary.scalar_function(op, dtype)
    if found is None:
        return None
    name, kind = function_name(found, lanes), vector_type(llvm_type(dtype), lanes)
    f.needed |= function_texts(found, lanes)
    if lanes and found.rare:
        args = [_harmless(f, llvm_type(dtype), arg, lanes) for arg in args]
    how = NOINLINE if lanes and f.is_remainder() else ""
    return f.call(kind, name, *[(kind, arg) for arg in args], own=True, how=how)


def function_name(function, lanes):
    """Return what a function of so many numbers at once is called."""
    return f"{function.label}_v{lanes}" if lanes else function.label


@cached_until_redefined
def function_texts(function, lanes, label=None, how="alwaysinline"):
    """Return the texts of an elementary function and of what it needs, by names.

    Args:
      function: a `ScalarFunction`.
      lanes: for how many numbers at once; 0 for one.
      label, how: its name, by default that of the function, and how it is called.
    """
    f, label = FunctionBuilder(), label or function_name(function, lanes)
    names = {node: f"%x{node.detail}" for node in function.args}
    emit_nodes(f, function.nodes, names, lanes)
    result = names[function.result]
    if function.rare:
        result = _write_rare(f, function, names, lanes, f"{label}_rare")
        f.needed |= _rare_texts(function, lanes, f"{label}_rare")
    return f.needed | {label: _definition(f, function, label, lanes, result, how)}


def _kind_of(node, lanes):
    """Return LLVM's type of so many of a node's numbers at once."""
    return vector_type(llvm_type(node.dtype), lanes)


def _harmless(f, kind, x, lanes):
    """Write a vector that has ones in the lanes that do not count: 1 is never rare."""
    mask, one = f.living(), splat(kind, "1.0", lanes)
    return f.select(mask, x, one, kind, lanes) if mask else x


def _definition(f, function, label, lanes, result, how):
    params = [(_kind_of(x, lanes), f"%x{x.detail}") for x in function.args]
    end = _kind_of(function.result, lanes), result
    return f.definition(label, params, f"nounwind {how}", end)


def _write_rare(f, function, names, lanes, label):
    """Write the part for rare arguments, behind a branch; return the result's name."""
    condition, usual = names[function.rare.condition], names[function.result]
    kind = _kind_of(function.result, lanes)
    any_lane = f.any_lane(condition, lanes) if lanes else condition
    f.line(f"br i1 {any_lane}, label %rare, label %done, {SELDOM}")
    f.start("rare")
    args = [(_kind_of(x, lanes), f"%x{x.detail}") for x in function.args]
    slow = f.call(kind, label, *args, own=True)
    if lanes:
        slow = f.select(condition, slow, usual, _kind_of(function.result, 0), lanes)
    f.line("br label %done")
    f.start("done")
    return f.emit(f"phi {kind} [ {usual}, %entry ], [ {slow}, %rare ]")


# Tells LLVM that a branch is hardly ever taken.
SELDOM = '!prof !{!"branch_weights", i32 1, i32 4000}'


def _one_by_one(function, lanes, label):
    """Return the text of a function of a vector that calls another for each lane.

    It is a function of its own: callers contain the others, and need no loop in each.
    """
    f, kind = FunctionBuilder(), _kind_of(function.result, 0)
    vector = vector_type(kind, lanes)

    def body(lane, names):
        args = []
        for x in function.args:
            place = f"{_kind_of(x, lanes)} %x{x.detail}, i64 {lane}"
            args.append((_kind_of(x, 0), f.emit(f"extractelement {place}")))
        value = f.call(kind, f"{function.label}_rare", *args, own=True)
        pair = f"{vector} {names[0]}, {kind} {value}"
        return [f.emit(f"insertelement {pair}, i64 {lane}")]

    [result] = f.counted_loop(0, 1, lanes, [(vector, "undef")], body)
    return _definition(f, function, label, lanes, result, "noinline")


def _rare_texts(function, lanes, label):
    """Return the texts of the function that is right for rare numbers.

    A vector has a loop for them, unless some are rarer than others: then those that
    are less rare are worth a vector.
    """
    path, one = function.rare, f"{function.label}_rare"
    ends = [[p.condition, p.result] for p in slow_paths(path)]
    kept = backward_slice([node for pair in ends for node in pair])
    nodes = [node for node in (*function.nodes, *path.nodes) if node in kept]
    slow = ScalarFunction(one, function.args, (*nodes,), path.result, path.rarer)
    if lanes and path.rarer:
        return function_texts(slow, lanes, label, "noinline")
    found = function_texts(slow, 0, one, "noinline")
    return found | {label: _one_by_one(function, lanes, label)} if lanes else found


# Loops that may have lanes: how many, and what memory costs them.


def store_cost(step, axis, lanes):
    """Return what a store costs with so many lanes along an axis."""
    stride = step.place.strides[axis] if axis is not None else 1
    if step.update:
        return 2 if stride == 1 else 3 * lanes
    return 1 if abs(stride) == 1 else 1.5 * lanes


def load_cost(node, axis, lanes):
    """Return what a load costs; the unit is a load of neighbours."""
    if gathers(node, axis):
        return 3 * lanes
    stride = node.detail.place.strides[axis] if axis is not None else 1
    if abs(stride) <= 1:
        return 1
    return 4 * stride - 3 if 1 < stride <= 4 else 3 * lanes


def gathers(step, axis):
    """Return whether each lane of a step loads from a computed place of its own."""
    loads = isinstance(step, Node) and step.op == "load"
    return loads and any(axis in number.level for number in step.args)


def is_scan_combine(step):
    """Return whether in this step a number enters a running fold."""
    return isinstance(step, FoldCombine) and is_scan(step.fold)


def is_loop(step):
    """Return whether a step has a body."""
    return isinstance(step, Loop)


def walk_nest(steps):
    """Yield the steps of a nest, those inside of loops too."""
    for step in steps:
        yield step
        if is_loop(step):
            yield from walk_nest(step.body)


def leaps(step, axis):
    """Return whether the elements of a step's lanes are no neighbours."""
    if isinstance(step, Store):
        return abs(step.place.strides[axis]) > 1
    loads = isinstance(step, Node) and step.op == "load"
    return loads and abs(step.detail.place.strides[axis]) > 1


def is_unrollable(kernel, loop, beside=1):
    """Return whether the iterations of a loop may be written out one after the other.

    Each of its steps may have to be written several times `beside` itself.
    """
    steps = vector_trip_count(kernel, [loop])
    return kernel.sizes[loop.axis] <= 16 and steps <= 64 and steps * beside <= 256


def vector_trip_count(kernel, steps):
    """Return how many steps are done, if each vector is one."""
    return sum(
        (1 if step.lanes else kernel.sizes[step.axis])
        * vector_trip_count(kernel, step.body)
        if is_loop(step)
        else 1
        for step in steps
    )


def is_function_call(step):
    """Return whether a step is a node that takes as long as many others."""
    row = scalar_ops.get(step.op) if isinstance(step, Node) else None
    return row is not None and row.cost == "transcendentals"


def widest_dtype(loop):
    """Return the dtype of the longest numbers that a loop computes with.

    Numbers that are computed places do not count: each lane's is taken out of them. Nor
    do those that indices and constants make, unless they are stored.
    """
    steps = [*walk_nest(loop.body)]
    nodes = [step for step in steps if isinstance(step, Node)]
    aside = {arg for node in nodes if node.op == "load" for arg in node.args}
    for node in nodes:
        whole = node.dtype.kind in "iu" and node.op != "load"
        known = (x in aside or x.op in ("constant", "index") for x in node.args)
        aside |= {node} if whole and all(known) else set()
    ends = [step.node for step in steps if isinstance(step, Store)]
    ends += [fold.args[0] for fold in loop.folds]
    dtypes = [x.dtype for x in nodes if x not in aside]
    dtypes += [x.dtype for x in ends if x.op not in ("constant", "index")]
    rest = [x.dtype for x in (*nodes, *ends)][:1]
    return max(dtypes or rest, key=lambda dtype: dtype.itemsize)


def vector_lanes(kernel, loop, target):
    """Return how many numbers the vectors of a loop hold.

    Where there is little to do for each of them, several registers stand for a vector:
    then the processor has something to do while it waits. Elements that are no
    neighbours, and that enter running folds, keep it busy without. So do functions,
    but not if each iteration of a loop inside goes to another row for its numbers.
    A long chain of operations, as of a polynomial, leaves it idle (`waits_long`).
    """
    size, lanes = kernel.sizes[loop.axis], target.lanes(widest_dtype(loop))
    if size <= lanes:
        return size
    steps = [*walk_nest(loop.body)]
    functions, rows = any(map(is_function_call, steps)), functions_of_rows(loop)
    folds = loop.folds or any(isinstance(step, Loop) for step in steps)
    leaping = any(leaps(step, loop.axis) for step in steps)
    apart = any(map(is_scan_combine, steps)) and leaping
    apart = apart or any(gathers(step, loop.axis) for step in steps)
    if folds and (rows or not functions) and not apart:
        most = min((target.registers // 8 if functions else 4) * lanes, size)
        while 2 * lanes <= most:
            lanes *= 2
    if not folds and not functions and not leaping and waits_long(loop.body):
        most = min(4, target.registers // live_values(loop.body)) * lanes
        while 2 * lanes <= min(most, size // MIN_ITERATIONS):
            lanes *= 2
    return lanes


LONG_WAIT, MIN_ITERATIONS = 40, 4  # cycles; of a loop whose vectors are registers


def waits_long(steps):
    """Return whether operations wait for one another so long that a processor idles.

    It goes on with the next iteration meanwhile, but looks only so far ahead.
    """
    waits = {}
    for node in steps:
        if isinstance(node, Node):
            before = [waits.get(arg, 0) for arg in node.args]
            waits[node] = max(before, default=0) + latency(node)
    return max(waits.values(), default=0) >= LONG_WAIT


def latency(node):
    """Return about how many cycles an operation takes; loads are done ahead of it."""
    if node.op in ("constant", "index", "load"):
        return 0
    return 4 if node.args[-1].dtype.kind == "f" else 1


def live_values(steps):
    """Return how many values of steps are needed at once; constants are in memory."""
    last, live, most = {}, set(), 1
    for number, step in enumerate(steps):
        inputs = step.args if isinstance(step, Node) else (step.node,)
        last.update(dict.fromkeys(inputs, number))
    for number, step in enumerate(steps):
        live = {node for node in live if last[node] > number}
        if isinstance(step, Node) and step.op != "constant" and step in last:
            live.add(step)
        most = max(most, len(live))
    return most


def functions_of_rows(loop):
    """Return whether an inner loop has functions, and reads a row in each iteration."""
    inner = [step for step in loop.body if is_loop(step)]
    return any(
        any(map(is_function_call, each.body))
        and any(leaps(step, each.axis) for step in each.body)
        for each in inner
    )
