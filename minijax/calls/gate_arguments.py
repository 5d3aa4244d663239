# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The gate's first half: arguments, and where their numbers are.

These are functions of `words`: they are made machine code, and run as Python as well.
"""

from minijax.calls.gate_tables import (
    AROUND,
    ARRAY,
    ARRAYS_ONLY,
    AS_INTEGER,
    AUX,
    BOOL,
    CALL_WITH,
    CHILDREN,
    CLEAR,
    CONTAINER,
    COPIES,
    DICT,
    EQUAL,
    EXCEPTION,
    FLATTEN,
    FLOAT,
    GET_ITEM,
    INCREF,
    INT,
    KIND,
    KNOWN_AVAL,
    KNOWN_DESCR,
    KNOWN_DIMS,
    KNOWN_NDIM,
    KNOWN_PLACE,
    KNOWN_WEAK,
    LEAF,
    LENGTH,
    MATCHES,
    NDARRAY,
    NOTHING,
    NUMBER,
    OCCURRED,
    PAIR,
    PAIRS,
    PARTS,
    PIECES,
    REGISTERED,
    ROW,
    SCALAR,
    SLOT,
    SPAN,
    STATIC,
    STEP,
    SWITCHES,
    TAKEN,
    TRUE,
    WIDE,
)
from minijax.calls.object_layout import (
    AVAL,
    BUFFER,
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    FLOAT_VALUE,
    LIST_ITEMS,
    NDIM,
    ORDERED,
    PLACEMENT,
    SCALAR_VALUE,
    SIZE,
    TUPLE_ITEMS,
    TYPE,
    WEAK,
)
from minijax.calls.words import as_float32, call, half, room, word

STATUS, EQ = 0xFFFFFFFF, 2  # the bits of an int of C; Python's code of ``==``


def fits(x, known, around):
    """Return the address of a NumPy array's numbers, or 0 if it is of another kind."""
    if word[x + TYPE] != word[around + NDARRAY]:
        return 0
    if word[x + DESCR] != word[known + KNOWN_DESCR]:
        return 0
    if half[x + FLAGS] & ORDERED != ORDERED:
        return 0
    if half[x + NDIM] != word[known + KNOWN_NDIM]:
        return 0
    i = 0
    while i < 8 * half[x + NDIM]:
        if word[word[x + DIMS] + i] != word[word[known + KNOWN_DIMS] + i]:
            return 0
        i += 8
    return word[x + DATA]


def integer(x, known, place, around):
    """Write an integer of Python to a place, and return the place, or 0."""
    word[place] = 0
    value = call(word[around + AS_INTEGER], x, place)
    if word[place] != 0:
        return 0
    word[place] = value
    if word[known + NUMBER] == -4 and value != (value << 32) >> 32:
        return 0
    return place


def numpy_scalar(x, known, place):
    """Return where the number of a scalar of NumPy is, or 0."""
    kind = word[x + TYPE]
    parts = word[known + PARTS]
    if kind == word[known + SCALAR]:
        return x + SCALAR_VALUE
    if kind != word[known + WIDE]:
        return 0
    if parts == 0:
        return x + SCALAR_VALUE
    half[place] = as_float32(word[x + SCALAR_VALUE])
    if parts == 2:
        half[place + 4] = as_float32(word[x + SCALAR_VALUE + 8])
    return place


def number(x, known, place, around):
    """Write a number of Python to a place, and return the place, or 0."""
    kind = word[x + TYPE]
    if kind == word[around + FLOAT] and word[known + NUMBER] > 1:
        word[place] = word[x + FLOAT_VALUE]
        if word[known + NUMBER] == 4:
            word[place] = as_float32(word[place])
        return place
    if kind == word[around + INT] and word[known + NUMBER] < 0:
        return integer(x, known, place, around)
    if kind == word[around + BOOL] and word[known + NUMBER] == 1:
        word[place] = x == word[around + TRUE]
        return place
    return numpy_scalar(x, known, place)


def located(x, known, record, out):
    """Note where the numbers of a buffer, or its parts, are; return 0 if it differs."""
    around = word[record + AROUND]
    count = word[known + PIECES]
    if count == 0:
        return fits(x, known, around)
    if word[x + TYPE] != word[around + PAIR] or word[x + SIZE] != count:
        return 0
    item = x + TUPLE_ITEMS + 8 * count
    place = out - count * word[record + SPAN]
    while place < out:
        item += -8
        place += word[record + SPAN]
        word[place] = fits(word[item], known, around)
        if word[place] == 0:
            return 0
    return word[out]


def take_leaf(x, known, record, out):
    """Note where a leaf's numbers are, and who holds them; return 0 if it differs."""
    around = word[record + AROUND]
    span = word[record + SPAN]
    kind = word[x + TYPE]
    place = word[known + KNOWN_PLACE]
    word[out] = 0
    word[out + 3 * span] = 0
    if kind == word[around + ARRAY] and word[x + PLACEMENT] == place:
        aval = word[x + AVAL]
        word[out + 3 * span] = x
        x = word[x + BUFFER]
        same = aval == word[known + KNOWN_AVAL]
        if same or word[aval + WEAK] == word[known + KNOWN_WEAK]:
            word[out] = located(x, known, record, out)
    elif word[known + ARRAYS_ONLY] != 0:
        return 0
    elif kind == word[around + NDARRAY]:
        if word[known + KNOWN_WEAK] != word[around + TRUE]:
            word[out] = fits(x, known, around)
    else:
        word[out] = number(x, known, out + span, around)
    i = 1
    while i < word[known + COPIES]:
        word[out - i * span] = word[out]
        i += 1
    if word[out] != 0 and word[known + STEP] != 0:
        word[out + 2 * span] = x
        call(word[around + INCREF], x)
        word[record + TAKEN] = out + 8
    return word[out]


def children_of(x, node, record):
    """Return the children of a registered container, a tuple or list; 0 if it differs.

    The pair that they are in is held by the record.
    """
    around = word[record + AROUND]
    place = room(1)
    word[place] = x
    pair = call(word[around + CALL_WITH], word[node + FLATTEN], place, 1, 0)
    if pair == 0:
        return forgive(around)
    word[word[record + PAIRS] + word[node + SLOT]] = pair
    if word[pair + TYPE] != word[around + PAIR] or word[pair + SIZE] != 2:
        return disable(record)
    aux = word[pair + TUPLE_ITEMS + 8]
    if aux == word[node + AUX]:
        return word[pair + TUPLE_ITEMS]
    if call(word[around + EQUAL], aux, word[node + AUX], EQ) & STATUS != 1:
        return forgive(around)
    return word[pair + TUPLE_ITEMS]


def disable(record):
    """Have a record fit no call any more; return 0."""
    word[record + SWITCHES] = 0
    return 0


def forgive(around):
    """Forget an error that Python will meet again; return 0."""
    if call(word[around + OCCURRED]) == 0:
        return 0
    if call(word[around + MATCHES], word[around + EXCEPTION]) & STATUS != 0:
        call(word[around + CLEAR])
    return 0


def take(x, node, record, out):
    """Take a tree apart, and return where the next leaf goes, or 0 if it differs."""
    kind = word[node + KIND]
    if kind == LEAF:
        if take_leaf(x, word[node + CONTAINER], record, out) == 0:
            return 0
        return out + word[word[node + CONTAINER] + STEP]
    if kind == STATIC:
        return out * (x == word[node + CONTAINER])
    if word[x + TYPE] != word[node + CONTAINER]:
        return 0
    if kind == NOTHING:
        return out
    if kind == REGISTERED:
        x = children_of(x, node, record)
        if x == 0:
            return 0
    row = word[x + TYPE] == word[word[record + AROUND] + ROW]
    pair = word[x + TYPE] == word[word[record + AROUND] + PAIR]
    if kind == REGISTERED and not row and not pair:
        return disable(record)
    if word[x + SIZE] != word[node + LENGTH]:
        return 0
    items = x + TUPLE_ITEMS
    if row:
        items = word[x + LIST_ITEMS]
    i = 0
    while i < word[node + LENGTH] and out != 0:
        child = node + CHILDREN + 16 * i
        if kind == DICT:
            item = call(word[word[record + AROUND] + GET_ITEM], x, word[child + 8])
        else:
            item = word[items + 8 * i]
        if item == 0:
            return 0
        out = take(item, word[child], record, out)
        i += 1
    return out
