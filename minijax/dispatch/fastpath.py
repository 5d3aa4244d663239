"""The fast path of dispatch: a warmed call of a jitted function, as machine code.

It looks at the arguments, takes the addresses of their numbers, has the program run,
and hands its results back. What it does not know, it leaves to Python. These are
functions of `words`: they are made machine code, and run as Python as well.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes

from minijax.dispatch.fastpath_tables import (
    MAX_SPARE_RESULTS,
    CallSignature,
    LeafSpec,
    RuntimeGlobals,
    TreeNode,
    TreeNodeKind,
)
from minijax.dispatch.lowlevel import (
    ORDERED_FLAG,
    WRITEABLE_FLAG,
    LowLevelLibrary,
    ObjectOffsets,
    alloca,
    call_pointer,
    f64_to_f32_bits,
    i64,
    llvm_text,
    u32,
)

STATUS_MASK, EQ = 0xFFFFFFFF, 2  # the bits of an int of C; Python's code of ``==``


def array_data_address(x, known, around):
    """Return the address of a NumPy array's numbers, or 0 if it is of another kind."""
    if i64[x + ObjectOffsets.type] != i64[around + RuntimeGlobals.ndarray]:
        return 0
    if i64[x + ObjectOffsets.descr] != i64[known + LeafSpec.descr]:
        return 0
    if u32[x + ObjectOffsets.flags] & ORDERED_FLAG != ORDERED_FLAG:
        return 0
    if u32[x + ObjectOffsets.ndim] != i64[known + LeafSpec.ndim]:
        return 0
    i = 0
    while i < 8 * u32[x + ObjectOffsets.ndim]:
        if i64[i64[x + ObjectOffsets.dims] + i] != i64[i64[known + LeafSpec.dims] + i]:
            return 0
        i += 8
    return i64[x + ObjectOffsets.data]


def integer(x, known, place, around):
    """Write an integer of Python to a place, and return the place, or 0."""
    i64[place] = 0
    value = call_pointer(i64[around + RuntimeGlobals.as_integer], x, place)
    if i64[place] != 0:
        return 0
    i64[place] = value
    if i64[known + LeafSpec.number] == -4 and value != (value << 32) >> 32:
        return 0
    return place


def numpy_scalar(x, known, place):
    """Return where the number of a scalar of NumPy is, or 0."""
    kind = i64[x + ObjectOffsets.type]
    parts = i64[known + LeafSpec.parts]
    if kind == i64[known + LeafSpec.scalar]:
        return x + ObjectOffsets.scalar_value
    if kind != i64[known + LeafSpec.wide]:
        return 0
    if parts == 0:
        return x + ObjectOffsets.scalar_value
    u32[place] = f64_to_f32_bits(i64[x + ObjectOffsets.scalar_value])
    if parts == 2:
        u32[place + 4] = f64_to_f32_bits(i64[x + ObjectOffsets.scalar_value + 8])
    return place


def read_number(x, known, place, around):
    """Write a number of Python to a place, and return the place, or 0."""
    kind = i64[x + ObjectOffsets.type]
    if kind == i64[around + RuntimeGlobals.float] and i64[known + LeafSpec.number] > 1:
        i64[place] = i64[x + ObjectOffsets.float_value]
        if i64[known + LeafSpec.number] == 4:
            i64[place] = f64_to_f32_bits(i64[place])
        return place
    if kind == i64[around + RuntimeGlobals.int] and i64[known + LeafSpec.number] < 0:
        return integer(x, known, place, around)
    if kind == i64[around + RuntimeGlobals.bool] and i64[known + LeafSpec.number] == 1:
        i64[place] = x == i64[around + RuntimeGlobals.true]
        return place
    return numpy_scalar(x, known, place)


def located(x, known, record, out):
    """Note where the numbers of a buffer, or its parts, are; return 0 if it differs."""
    around = i64[record + CallSignature.around]
    count = i64[known + LeafSpec.pieces]
    if count == 0:
        return array_data_address(x, known, around)
    if (
        i64[x + ObjectOffsets.type] != i64[around + RuntimeGlobals.pair]
        or i64[x + ObjectOffsets.size] != count
    ):
        return 0
    item = x + ObjectOffsets.tuple_items + 8 * count
    place = out - count * i64[record + CallSignature.span]
    while place < out:
        item += -8
        place += i64[record + CallSignature.span]
        i64[place] = array_data_address(i64[item], known, around)
        if i64[place] == 0:
            return 0
    return i64[out]


def take_leaf(x, known, record, out):
    """Note where a leaf's numbers are, and who holds them; return 0 if it differs."""
    around = i64[record + CallSignature.around]
    span = i64[record + CallSignature.span]
    kind = i64[x + ObjectOffsets.type]
    place = i64[known + LeafSpec.place]
    i64[out] = 0
    i64[out + 3 * span] = 0
    if (
        kind == i64[around + RuntimeGlobals.array]
        and i64[x + ObjectOffsets.placement] == place
    ):
        aval = i64[x + ObjectOffsets.aval]
        i64[out + 3 * span] = x
        x = i64[x + ObjectOffsets.buffer]
        same = aval == i64[known + LeafSpec.aval]
        if same or i64[aval + ObjectOffsets.weak] == i64[known + LeafSpec.weak]:
            i64[out] = located(x, known, record, out)
    elif i64[known + LeafSpec.arrays_only] != 0:
        return 0
    elif kind == i64[around + RuntimeGlobals.ndarray]:
        if i64[known + LeafSpec.weak] != i64[around + RuntimeGlobals.true]:
            i64[out] = array_data_address(x, known, around)
    else:
        i64[out] = read_number(x, known, out + span, around)
    i = 1
    while i < i64[known + LeafSpec.copies]:
        i64[out - i * span] = i64[out]
        i += 1
    if i64[out] != 0 and i64[known + LeafSpec.step] != 0:
        i64[out + 2 * span] = x
        call_pointer(i64[around + RuntimeGlobals.incref], x)
        i64[record + CallSignature.taken] = out + 8
    return i64[out]


def children_of(x, node, record):
    """Return the children of a registered container, a tuple or list; 0 if it differs.

    The pair that they are in is held by the record.
    """
    around = i64[record + CallSignature.around]
    place = alloca(1)
    i64[place] = x
    pair = call_pointer(
        i64[around + RuntimeGlobals.call_with],
        i64[node + TreeNode.flatten],
        place,
        1,
        0,
    )
    if pair == 0:
        return forgive(around)
    i64[i64[record + CallSignature.pairs] + i64[node + TreeNode.slot]] = pair
    if (
        i64[pair + ObjectOffsets.type] != i64[around + RuntimeGlobals.pair]
        or i64[pair + ObjectOffsets.size] != 2
    ):
        return disable(record)
    aux = i64[pair + ObjectOffsets.tuple_items + 8]
    if aux == i64[node + TreeNode.aux]:
        return i64[pair + ObjectOffsets.tuple_items]
    if (
        call_pointer(
            i64[around + RuntimeGlobals.equal], aux, i64[node + TreeNode.aux], EQ
        )
        & STATUS_MASK
        != 1
    ):
        return forgive(around)
    return i64[pair + ObjectOffsets.tuple_items]


def disable(record):
    """Have a record fit no call any more; return 0."""
    i64[record + CallSignature.switches] = 0
    return 0


def forgive(around):
    """Forget an error that Python will meet again; return 0."""
    if call_pointer(i64[around + RuntimeGlobals.occurred]) == 0:
        return 0
    kind = i64[around + RuntimeGlobals.exception]
    if call_pointer(i64[around + RuntimeGlobals.matches], kind) & STATUS_MASK != 0:
        call_pointer(i64[around + RuntimeGlobals.clear])
    return 0


def flatten_tree(x, node, record, out):
    """Take a tree apart, and return where the next leaf goes, or 0 if it differs."""
    kind = i64[node + TreeNode.kind]
    if kind == TreeNodeKind.leaf:
        if take_leaf(x, i64[node + TreeNode.container], record, out) == 0:
            return 0
        return out + i64[i64[node + TreeNode.container] + LeafSpec.step]
    if kind == TreeNodeKind.static:
        return out * (x == i64[node + TreeNode.container])
    if i64[x + ObjectOffsets.type] != i64[node + TreeNode.container]:
        return 0
    if kind == TreeNodeKind.nothing:
        return out
    if kind == TreeNodeKind.registered:
        x = children_of(x, node, record)
        if x == 0:
            return 0
    around = i64[record + CallSignature.around]
    row = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.row]
    pair = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.pair]
    if kind == TreeNodeKind.registered and not row and not pair:
        return disable(record)
    if i64[x + ObjectOffsets.size] != i64[node + TreeNode.length]:
        return 0
    items = x + ObjectOffsets.tuple_items
    if row:
        items = i64[x + ObjectOffsets.list_items]
    i = 0
    while i < i64[node + TreeNode.length] and out != 0:
        child = node + TreeNode.children + 16 * i
        if kind == TreeNodeKind.dict:
            item = call_pointer(
                i64[around + RuntimeGlobals.get_item], x, i64[child + 8]
            )
        else:
            item = i64[items + 8 * i]
        if item == 0:
            return 0
        out = flatten_tree(item, i64[child], record, out)
        i += 1
    return out


# The gate's second half: results, and the trees that they are handed back in.


def reuse_result(known, around):
    """Return a result of an earlier call that is held nowhere any more, or 0."""
    items = i64[i64[known + LeafSpec.spares] + ObjectOffsets.list_items]
    i = 0
    while i < i64[i64[known + LeafSpec.spares] + ObjectOffsets.size]:
        x = i64[items + 8 * i]
        whole = i64[x + ObjectOffsets.type] == i64[around + RuntimeGlobals.array]
        if (
            whole
            and i64[x + ObjectOffsets.refs] == 1
            and i64[i64[x + ObjectOffsets.buffer] + ObjectOffsets.refs] == 1
            and i64[x + ObjectOffsets.weak_references] == 0
            and unseen(i64[x + ObjectOffsets.buffer], i64[known + LeafSpec.pieces])
        ):
            i64[x + ObjectOffsets.refs] = 2
            return x
        i += 1
    return 0


def unseen(buffer, count):
    """Return whether the parts of a buffer are held by it alone."""
    items = buffer + ObjectOffsets.tuple_items
    while count > 0 and i64[i64[items + 8 * count - 8] + ObjectOffsets.refs] == 1:
        count += -1
    return count == 0


def keep(x, known, around):
    """Put a result on the list of those that may be used again one day."""
    spares = i64[known + LeafSpec.spares]
    if i64[spares + ObjectOffsets.size] != 0:
        turn = i64[known + LeafSpec.turn]
        place = i64[spares + ObjectOffsets.list_items] + 8 * turn
        i64[known + LeafSpec.turn] = (turn + 1) & (MAX_SPARE_RESULTS - 1)
        before = i64[place]
        i64[place] = x
        call_pointer(i64[around + RuntimeGlobals.incref], x)
        call_pointer(i64[around + RuntimeGlobals.decref], before)
    return 0


def new_buffer(known, around):
    """Return a new array of NumPy, read-only, or 0 if there is no memory."""
    if i64[known + LeafSpec.maker] != 0:
        empty = i64[around + RuntimeGlobals.empty]
        made = call_pointer(
            i64[around + RuntimeGlobals.call], i64[known + LeafSpec.maker], empty, 0
        )
    else:
        call_pointer(i64[around + RuntimeGlobals.incref], i64[known + LeafSpec.descr])
        made = call_pointer(
            i64[around + RuntimeGlobals.new_ndarray],
            i64[around + RuntimeGlobals.ndarray],
            i64[known + LeafSpec.descr], i64[known + LeafSpec.ndim],
            i64[known + LeafSpec.dims], 0, 0, 0, 0,
        )  # fmt: skip
    if made != 0:
        u32[made + ObjectOffsets.flags] = (
            u32[made + ObjectOffsets.flags] - WRITEABLE_FLAG
        )
    return made


def new_parts(known, around):
    """Return a buffer for a result, a tuple if it is in parts; 0: no memory."""
    count = i64[known + LeafSpec.pieces]
    if count == 0:
        return new_buffer(known, around)
    parts = call_pointer(i64[around + RuntimeGlobals.new_tuple], count)
    while parts != 0 and count > 0:
        count += -1
        part = new_buffer(known, around)
        i64[parts + ObjectOffsets.tuple_items + 8 * count] = part
        if part == 0:
            call_pointer(i64[around + RuntimeGlobals.decref], parts)
            return 0
    return parts


def allocate_result(known, around):
    """Return a new array for a result, or 0 if there is no memory."""
    buffer = new_parts(known, around)
    if buffer == 0:
        return 0
    x = wrap_buffer(buffer, known, around)
    if x != 0:
        keep(x, known, around)
    return x


def wrap_buffer(buffer, known, around):
    """Return an array of ours that takes a buffer, or 0 if there is no memory."""
    x = call_pointer(
        i64[around + RuntimeGlobals.allocate], i64[around + RuntimeGlobals.array], 0
    )
    if x == 0:
        call_pointer(i64[around + RuntimeGlobals.decref], buffer)
        return 0
    i64[x + ObjectOffsets.buffer] = buffer
    i64[x + ObjectOffsets.aval] = i64[known + LeafSpec.aval]
    i64[x + ObjectOffsets.placement] = i64[known + LeafSpec.place]
    call_pointer(i64[around + RuntimeGlobals.incref], i64[x + ObjectOffsets.aval])
    call_pointer(i64[around + RuntimeGlobals.incref], i64[x + ObjectOffsets.placement])
    return x


def unflatten_container(children, node, around):
    """Return a registered container of a list, which it takes; 0 is an error."""
    place = alloca(2)
    i64[place] = i64[node + TreeNode.aux]
    i64[place + 8] = children
    unflatten = i64[node + TreeNode.unflatten]
    made = call_pointer(i64[around + RuntimeGlobals.call_with], unflatten, place, 2, 0)
    call_pointer(i64[around + RuntimeGlobals.decref], children)
    return made


def unflatten_tree(node, results, around):
    """Return the tree of the results, and empty their table; 0 is an error."""
    kind = i64[node + TreeNode.kind]
    length = i64[node + TreeNode.length]
    if kind == TreeNodeKind.leaf:
        x = i64[results + i64[node + TreeNode.container]]
        i64[results + i64[node + TreeNode.container]] = 0
        return x
    if kind == TreeNodeKind.nothing:
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.none]
        )
        return i64[around + RuntimeGlobals.none]
    if kind == TreeNodeKind.tuple:
        tree = call_pointer(i64[around + RuntimeGlobals.new_tuple], length)
    elif kind == TreeNodeKind.named:
        tree = call_pointer(
            i64[around + RuntimeGlobals.allocate],
            i64[node + TreeNode.container],
            length,
        )
    elif kind == TreeNodeKind.dict:
        tree = call_pointer(i64[around + RuntimeGlobals.new_dict])
    else:
        tree = call_pointer(i64[around + RuntimeGlobals.new_list], length)
    if tree == 0:
        return 0
    i = 0
    while i < length:
        child = node + TreeNode.children + 16 * i
        item = unflatten_tree(i64[child], results, around)
        if item == 0:
            call_pointer(i64[around + RuntimeGlobals.decref], tree)
            return 0
        if kind == TreeNodeKind.dict:
            call_pointer(
                i64[around + RuntimeGlobals.set_item], tree, i64[child + 8], item
            )
            call_pointer(i64[around + RuntimeGlobals.decref], item)
        elif kind < TreeNodeKind.list:  # a tuple, named or not
            i64[tree + ObjectOffsets.tuple_items + 8 * i] = item
        else:
            i64[i64[tree + ObjectOffsets.list_items] + 8 * i] = item
        i += 1
    if kind == TreeNodeKind.registered:
        return unflatten_container(tree, node, around)
    return tree


# The dispatch path (the gate): a warmed call of a jitted function, as machine code.

MISS = 1


def each(function, start, end):
    """Call a function with each word of a table."""
    while start < end:
        call_pointer(function, i64[start])
        start += 8
    return 0


def run_entry(record, table, arena):
    """Run the program on a table of addresses, and return its status."""
    around = i64[record + CallSignature.around]
    program = i64[record + CallSignature.program]
    context = i64[record + CallSignature.context]
    if i64[record + CallSignature.long] == 0:
        return call_pointer(program, table, arena, context) & STATUS_MASK
    thread = call_pointer(i64[around + RuntimeGlobals.unlock])
    status = call_pointer(program, table, arena, context) & STATUS_MASK
    call_pointer(i64[around + RuntimeGlobals.lock], thread)
    return status


def result_in(known, held, around):
    """Return an array for a result, in an argument's memory if it takes that; or 0."""
    source = i64[known + LeafSpec.source]
    if source >= 0:
        buffer = i64[held + source]
        call_pointer(i64[around + RuntimeGlobals.incref], buffer)
        return wrap_buffer(buffer, known, around)
    x = reuse_result(known, around)
    if x == 0:
        return allocate_result(known, around)
    return x


def address_results(buffer, count, record, place):
    """Note where the numbers of a result go, those of its parts row by row."""
    if count == 0:
        i64[place] = i64[buffer + ObjectOffsets.data]
        return 0
    item = buffer + ObjectOffsets.tuple_items
    end = item + 8 * count
    while item < end:
        i64[place] = i64[i64[item] + ObjectOffsets.data]
        place += 0 - i64[record + CallSignature.span]
        item += 8
    return 0


def make_results(record, table, held):
    """Find or make an array for each result, and note it; return 0 if it fails."""
    known = i64[record + CallSignature.result]
    i = i64[record + CallSignature.results]
    while i < i64[record + CallSignature.span]:
        x = result_in(known, held, i64[record + CallSignature.around])
        if x == 0:
            drop = i64[i64[record + CallSignature.around] + RuntimeGlobals.decref]
            each(drop, held + i64[record + CallSignature.results], held + i)
            return 0
        i64[held + i] = x
        count = i64[known + LeafSpec.pieces]
        address_results(i64[x + ObjectOffsets.buffer], count, record, table + i)
        known += LeafSpec.size
        i += 8
    return 1


def finish_call(record, table, held, arena):
    """Return the tree of results when all arguments are there; 0 is an error."""
    around = i64[record + CallSignature.around]
    results = held + i64[record + CallSignature.results]
    end = held + i64[record + CallSignature.span]
    donate_all(record, held)
    if make_results(record, table, held) == 0:
        return 0
    if run_entry(record, table, arena) == 0:
        tree = unflatten_tree(i64[record + CallSignature.structure], results, around)
        if tree == 0:
            each(i64[around + RuntimeGlobals.decref], results, end)
        return tree
    each(i64[around + RuntimeGlobals.decref], results, end)
    failure = i64[record + CallSignature.failure]
    return call_pointer(
        i64[around + RuntimeGlobals.call],
        failure,
        i64[around + RuntimeGlobals.empty],
        0,
    )


def alone(buffer, around):
    """Return whether a buffer is seen by its array alone, while the gate holds it.

    That is enough for a tuple of parts, whose memory no result takes.
    """
    if i64[buffer + ObjectOffsets.refs] != 2:
        return 0
    if i64[buffer + ObjectOffsets.type] == i64[around + RuntimeGlobals.pair]:
        return 1
    base = i64[buffer + ObjectOffsets.base]
    while base != 0:
        kind = i64[base + ObjectOffsets.type]
        if (
            kind == i64[around + RuntimeGlobals.heap]
            or kind == i64[around + RuntimeGlobals.pages]
        ):
            return 1
        if (
            kind != i64[around + RuntimeGlobals.ndarray]
            or i64[base + ObjectOffsets.refs] != 1
        ):
            return 0
        base = i64[base + ObjectOffsets.base]
    return 1


def may_give(record, held):
    """Return whether the memory of all arguments that are given up may be taken."""
    place = i64[record + CallSignature.given]
    while place < i64[record + CallSignature.given_end]:
        leaf = held + i64[place]
        if i64[leaf + i64[record + CallSignature.span]] == 0:
            return 0
        if alone(i64[leaf], i64[record + CallSignature.around]) == 0:
            return 0
        place += 8
    return 1


def donate_all(record, held):
    """Mark the arguments that are given up; their buffers are held elsewhere."""
    around = i64[record + CallSignature.around]
    place = i64[record + CallSignature.given]
    while place < i64[record + CallSignature.given_end]:
        leaf = held + i64[place]
        x = i64[leaf + i64[record + CallSignature.span]]
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.donated]
        )
        call_pointer(
            i64[around + RuntimeGlobals.incref], i64[around + RuntimeGlobals.none]
        )
        i64[x + ObjectOffsets.type] = i64[around + RuntimeGlobals.donated]
        i64[x + ObjectOffsets.buffer] = i64[around + RuntimeGlobals.none]
        call_pointer(i64[around + RuntimeGlobals.decref], i64[leaf])
        call_pointer(
            i64[around + RuntimeGlobals.decref], i64[around + RuntimeGlobals.array]
        )
        place += 8
    return 0


def take_all(args, keywords, record, table):
    """Take all arguments apart; return 0 if some are of another kind."""
    out = table
    i = 0
    while i < i64[record + CallSignature.count] and out != 0:
        node = i64[i64[record + CallSignature.arguments] + 8 * i]
        out = flatten_tree(i64[args + 8 * i], node, record, out)
        i += 1
    if out != 0 and i64[record + CallSignature.keywords] != 0:
        out = flatten_tree(keywords, i64[record + CallSignature.keywords], record, out)
    return out


def release_all(place, end, around):
    """Let go of what registered containers were taken apart into."""
    while place < end:
        pair = i64[place]
        i64[place] = 0
        call_pointer(i64[around + RuntimeGlobals.decref], pair)
        place += 8
    return 0


def try_call(record, args, keywords):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    around = i64[record + CallSignature.around]
    table = i64[record + CallSignature.places]
    held = table + 2 * i64[record + CallSignature.span]
    arena = i64[record + CallSignature.arena]
    i64[record + CallSignature.arena] = 0
    i64[record + CallSignature.taken] = table
    result = MISS
    if take_all(args, keywords, record, table) != 0:
        if may_give(record, held) != 0:
            result = finish_call(record, table, held, arena)
    elif call_pointer(i64[around + RuntimeGlobals.occurred]) != 0:
        result = 0
    each(
        i64[around + RuntimeGlobals.decref],
        held,
        held + i64[record + CallSignature.taken] - table,
    )
    release_all(
        i64[record + CallSignature.pairs], i64[record + CallSignature.pairs_end], around
    )
    i64[record + CallSignature.arena] = arena
    return result


def variable(name, around):
    """Return the value of a context variable, which is held elsewhere."""
    place = alloca(1)
    call_pointer(i64[around + RuntimeGlobals.get_variable], name, 0, place)
    call_pointer(i64[around + RuntimeGlobals.decref], i64[place])
    return i64[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if (
        variable(i64[around + RuntimeGlobals.trace], around)
        != i64[around + RuntimeGlobals.evaluator]
    ):
        return 0
    overrides = variable(i64[around + RuntimeGlobals.overrides], around)
    if overrides != i64[around + RuntimeGlobals.unchanged]:
        return 0
    return i64[i64[around + RuntimeGlobals.watchers] + ObjectOffsets.size] == 0


def signature_matches(record, args, kwargs):
    """Return whether a record is free, and for such a call as far as one can see."""
    now = i64[
        i64[i64[record + CallSignature.around] + RuntimeGlobals.config]
        + ObjectOffsets.config_values
    ]
    if (
        i64[record + CallSignature.switches] != now
        or i64[record + CallSignature.arena] == 0
    ):
        return 0
    if i64[args + ObjectOffsets.size] != i64[record + CallSignature.count]:
        return 0
    if kwargs == 0 or i64[kwargs + ObjectOffsets.size] == 0:
        return i64[record + CallSignature.keywords] == 0
    return i64[record + CallSignature.keywords] != 0


def lookup_call(record, args, kwargs):
    """Return the result of a call by the first record that fits, or `MISS`.

    A user's function may run meanwhile, and clear the chain: the next record is the
    one that is the next one afterwards.
    """
    while record != 0:
        following = i64[record + CallSignature.next]
        if signature_matches(record, args, kwargs):
            around = i64[record + CallSignature.around]
            owner = i64[record + CallSignature.owner]
            call_pointer(i64[around + RuntimeGlobals.incref], owner)
            result = try_call(record, args + ObjectOffsets.tuple_items, kwargs)
            following = i64[record + CallSignature.next]
            call_pointer(i64[around + RuntimeGlobals.decref], owner)
            if result != MISS:
                return result
        record = following
    return MISS


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = i64[i64[self + ObjectOffsets.gate] + ObjectOffsets.data]
    around = i64[head + CallSignature.around]
    if plain(around):
        result = lookup_call(i64[head + CallSignature.next], args, kwargs)
        if result != MISS:
            return result
    method = call_pointer(
        i64[around + RuntimeGlobals.new_method],
        i64[around + RuntimeGlobals.python],
        self,
    )
    if method == 0:
        return 0
    result = call_pointer(i64[around + RuntimeGlobals.call], method, args, kwargs)
    call_pointer(i64[around + RuntimeGlobals.decref], method)
    return result


def successor(table, arena, context):
    """A program for a trial: the next integer of 32 bits."""
    u32[i64[table + 8]] = u32[i64[table]] + 1
    return 0


class FastPath:
    """Machine code that answers calls, and a program to try it with.

    Attributes:
      address, trial: of the two functions.
      call: the first, of an object, a tuple, and None.
    """

    def __init__(self):
        rare = (
            read_number,
            allocate_result,
            children_of,
            unflatten_container,
        )  # not inlined: out of the way
        self.library = LowLevelLibrary(llvm_text(gate, successor, *rare))
        self.address, self.self_test = map(self.library.place, ("gate", "successor"))
        words = [ctypes.py_object] * 3 + [ctypes.c_void_p]
        self.call = ctypes.PYFUNCTYPE(*words)(self.address)
