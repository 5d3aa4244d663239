"""The gate's first half: arguments, and where their numbers are.

These are functions of `words`: they are made machine code, and run as Python as well.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.gate_tables import Around, Kind, Known, Node, Record
from minijax.calls.object_layout import ORDERED, At
from minijax.calls.words import as_float32, call, half, room, word

STATUS, EQ = 0xFFFFFFFF, 2  # the bits of an int of C; Python's code of ``==``


def fits(x, known, around):
    """Return the address of a NumPy array's numbers, or 0 if it is of another kind."""
    if word[x + At.type] != word[around + Around.ndarray]:
        return 0
    if word[x + At.descr] != word[known + Known.descr]:
        return 0
    if half[x + At.flags] & ORDERED != ORDERED:
        return 0
    if half[x + At.ndim] != word[known + Known.ndim]:
        return 0
    i = 0
    while i < 8 * half[x + At.ndim]:
        if word[word[x + At.dims] + i] != word[word[known + Known.dims] + i]:
            return 0
        i += 8
    return word[x + At.data]


def integer(x, known, place, around):
    """Write an integer of Python to a place, and return the place, or 0."""
    word[place] = 0
    value = call(word[around + Around.as_integer], x, place)
    if word[place] != 0:
        return 0
    word[place] = value
    if word[known + Known.number] == -4 and value != (value << 32) >> 32:
        return 0
    return place


def numpy_scalar(x, known, place):
    """Return where the number of a scalar of NumPy is, or 0."""
    kind = word[x + At.type]
    parts = word[known + Known.parts]
    if kind == word[known + Known.scalar]:
        return x + At.scalar_value
    if kind != word[known + Known.wide]:
        return 0
    if parts == 0:
        return x + At.scalar_value
    half[place] = as_float32(word[x + At.scalar_value])
    if parts == 2:
        half[place + 4] = as_float32(word[x + At.scalar_value + 8])
    return place


def number(x, known, place, around):
    """Write a number of Python to a place, and return the place, or 0."""
    kind = word[x + At.type]
    if kind == word[around + Around.float] and word[known + Known.number] > 1:
        word[place] = word[x + At.float_value]
        if word[known + Known.number] == 4:
            word[place] = as_float32(word[place])
        return place
    if kind == word[around + Around.int] and word[known + Known.number] < 0:
        return integer(x, known, place, around)
    if kind == word[around + Around.bool] and word[known + Known.number] == 1:
        word[place] = x == word[around + Around.true]
        return place
    return numpy_scalar(x, known, place)


def located(x, known, record, out):
    """Note where the numbers of a buffer, or its parts, are; return 0 if it differs."""
    around = word[record + Record.around]
    count = word[known + Known.pieces]
    if count == 0:
        return fits(x, known, around)
    if word[x + At.type] != word[around + Around.pair] or word[x + At.size] != count:
        return 0
    item = x + At.tuple_items + 8 * count
    place = out - count * word[record + Record.span]
    while place < out:
        item += -8
        place += word[record + Record.span]
        word[place] = fits(word[item], known, around)
        if word[place] == 0:
            return 0
    return word[out]


def take_leaf(x, known, record, out):
    """Note where a leaf's numbers are, and who holds them; return 0 if it differs."""
    around = word[record + Record.around]
    span = word[record + Record.span]
    kind = word[x + At.type]
    place = word[known + Known.place]
    word[out] = 0
    word[out + 3 * span] = 0
    if kind == word[around + Around.array] and word[x + At.placement] == place:
        aval = word[x + At.aval]
        word[out + 3 * span] = x
        x = word[x + At.buffer]
        same = aval == word[known + Known.aval]
        if same or word[aval + At.weak] == word[known + Known.weak]:
            word[out] = located(x, known, record, out)
    elif word[known + Known.arrays_only] != 0:
        return 0
    elif kind == word[around + Around.ndarray]:
        if word[known + Known.weak] != word[around + Around.true]:
            word[out] = fits(x, known, around)
    else:
        word[out] = number(x, known, out + span, around)
    i = 1
    while i < word[known + Known.copies]:
        word[out - i * span] = word[out]
        i += 1
    if word[out] != 0 and word[known + Known.step] != 0:
        word[out + 2 * span] = x
        call(word[around + Around.incref], x)
        word[record + Record.taken] = out + 8
    return word[out]


def children_of(x, node, record):
    """Return the children of a registered container, a tuple or list; 0 if it differs.

    The pair that they are in is held by the record.
    """
    around = word[record + Record.around]
    place = room(1)
    word[place] = x
    pair = call(word[around + Around.call_with], word[node + Node.flatten], place, 1, 0)
    if pair == 0:
        return forgive(around)
    word[word[record + Record.pairs] + word[node + Node.slot]] = pair
    if word[pair + At.type] != word[around + Around.pair] or word[pair + At.size] != 2:
        return disable(record)
    aux = word[pair + At.tuple_items + 8]
    if aux == word[node + Node.aux]:
        return word[pair + At.tuple_items]
    if call(word[around + Around.equal], aux, word[node + Node.aux], EQ) & STATUS != 1:
        return forgive(around)
    return word[pair + At.tuple_items]


def disable(record):
    """Have a record fit no call any more; return 0."""
    word[record + Record.switches] = 0
    return 0


def forgive(around):
    """Forget an error that Python will meet again; return 0."""
    if call(word[around + Around.occurred]) == 0:
        return 0
    kind = word[around + Around.exception]
    if call(word[around + Around.matches], kind) & STATUS != 0:
        call(word[around + Around.clear])
    return 0


def take(x, node, record, out):
    """Take a tree apart, and return where the next leaf goes, or 0 if it differs."""
    kind = word[node + Node.kind]
    if kind == Kind.leaf:
        if take_leaf(x, word[node + Node.container], record, out) == 0:
            return 0
        return out + word[word[node + Node.container] + Known.step]
    if kind == Kind.static:
        return out * (x == word[node + Node.container])
    if word[x + At.type] != word[node + Node.container]:
        return 0
    if kind == Kind.nothing:
        return out
    if kind == Kind.registered:
        x = children_of(x, node, record)
        if x == 0:
            return 0
    around = word[record + Record.around]
    row = word[x + At.type] == word[around + Around.row]
    pair = word[x + At.type] == word[around + Around.pair]
    if kind == Kind.registered and not row and not pair:
        return disable(record)
    if word[x + At.size] != word[node + Node.length]:
        return 0
    items = x + At.tuple_items
    if row:
        items = word[x + At.list_items]
    i = 0
    while i < word[node + Node.length] and out != 0:
        child = node + Node.children + 16 * i
        if kind == Kind.dict:
            item = call(word[around + Around.get_item], x, word[child + 8])
        else:
            item = word[items + 8 * i]
        if item == 0:
            return 0
        out = take(item, word[child], record, out)
        i += 1
    return out
