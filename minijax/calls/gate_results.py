"""The gate's second half: results, and the trees that they are handed back in.

These are functions of `words`: they are made machine code, and run as Python as well.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.gate_tables import KEPT, Around, Kind, Known, Node
from minijax.calls.object_layout import WRITEABLE, At
from minijax.calls.words import call, half, room, word


def spare(known, around):
    """Return a result of an earlier call that is held nowhere any more, or 0."""
    items = word[word[known + Known.spares] + At.list_items]
    i = 0
    while i < word[word[known + Known.spares] + At.size]:
        x = word[items + 8 * i]
        whole = word[x + At.type] == word[around + Around.array]
        if (
            whole
            and word[x + At.refs] == 1
            and word[word[x + At.buffer] + At.refs] == 1
            and word[x + At.weak_references] == 0
            and unseen(word[x + At.buffer], word[known + Known.pieces])
        ):
            word[x + At.refs] = 2
            return x
        i += 1
    return 0


def unseen(buffer, count):
    """Return whether the parts of a buffer are held by it alone."""
    items = buffer + At.tuple_items
    while count > 0 and word[word[items + 8 * count - 8] + At.refs] == 1:
        count += -1
    return count == 0


def keep(x, known, around):
    """Put a result on the list of those that may be used again one day."""
    spares = word[known + Known.spares]
    if word[spares + At.size] != 0:
        turn = word[known + Known.turn]
        place = word[spares + At.list_items] + 8 * turn
        word[known + Known.turn] = (turn + 1) & (KEPT - 1)
        before = word[place]
        word[place] = x
        call(word[around + Around.incref], x)
        call(word[around + Around.decref], before)
    return 0


def new_buffer(known, around):
    """Return a new array of NumPy, read-only, or 0 if there is no memory."""
    if word[known + Known.maker] != 0:
        empty = word[around + Around.empty]
        made = call(word[around + Around.call], word[known + Known.maker], empty, 0)
    else:
        call(word[around + Around.incref], word[known + Known.descr])
        made = call(
            word[around + Around.new_ndarray], word[around + Around.ndarray],
            word[known + Known.descr], word[known + Known.ndim],
            word[known + Known.dims], 0, 0, 0, 0,
        )  # fmt: skip
    if made != 0:
        half[made + At.flags] = half[made + At.flags] - WRITEABLE
    return made


def new_parts(known, around):
    """Return a buffer for a result, a tuple if it is in parts; 0: no memory."""
    count = word[known + Known.pieces]
    if count == 0:
        return new_buffer(known, around)
    parts = call(word[around + Around.new_tuple], count)
    while parts != 0 and count > 0:
        count += -1
        part = new_buffer(known, around)
        word[parts + At.tuple_items + 8 * count] = part
        if part == 0:
            call(word[around + Around.decref], parts)
            return 0
    return parts


def new_result(known, around):
    """Return a new array for a result, or 0 if there is no memory."""
    buffer = new_parts(known, around)
    if buffer == 0:
        return 0
    x = handle(buffer, known, around)
    if x != 0:
        keep(x, known, around)
    return x


def handle(buffer, known, around):
    """Return an array of ours that takes a buffer, or 0 if there is no memory."""
    x = call(word[around + Around.allocate], word[around + Around.array], 0)
    if x == 0:
        call(word[around + Around.decref], buffer)
        return 0
    word[x + At.buffer] = buffer
    word[x + At.aval] = word[known + Known.aval]
    word[x + At.placement] = word[known + Known.place]
    call(word[around + Around.incref], word[x + At.aval])
    call(word[around + Around.incref], word[x + At.placement])
    return x


def rebuilt(children, node, around):
    """Return a registered container of a list, which it takes; 0 is an error."""
    place = room(2)
    word[place] = word[node + Node.aux]
    word[place + 8] = children
    unflatten = word[node + Node.unflatten]
    made = call(word[around + Around.call_with], unflatten, place, 2, 0)
    call(word[around + Around.decref], children)
    return made


def build(node, results, around):
    """Return the tree of the results, and empty their table; 0 is an error."""
    kind = word[node + Node.kind]
    length = word[node + Node.length]
    if kind == Kind.leaf:
        x = word[results + word[node + Node.container]]
        word[results + word[node + Node.container]] = 0
        return x
    if kind == Kind.nothing:
        call(word[around + Around.incref], word[around + Around.none])
        return word[around + Around.none]
    if kind == Kind.tuple:
        tree = call(word[around + Around.new_tuple], length)
    elif kind == Kind.named:
        tree = call(word[around + Around.allocate], word[node + Node.container], length)
    elif kind == Kind.dict:
        tree = call(word[around + Around.new_dict])
    else:
        tree = call(word[around + Around.new_list], length)
    if tree == 0:
        return 0
    i = 0
    while i < length:
        child = node + Node.children + 16 * i
        item = build(word[child], results, around)
        if item == 0:
            call(word[around + Around.decref], tree)
            return 0
        if kind == Kind.dict:
            call(word[around + Around.set_item], tree, word[child + 8], item)
            call(word[around + Around.decref], item)
        elif kind < Kind.list:  # a tuple, named or not
            word[tree + At.tuple_items + 8 * i] = item
        else:
            word[word[tree + At.list_items] + 8 * i] = item
        i += 1
    if kind == Kind.registered:
        return rebuilt(tree, node, around)
    return tree
