# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The gate's second half: results, and the trees that they are handed back in.

These are functions of `words`: they are made machine code, and run as Python as well.
"""

from minijax.calls.gate_tables import (
    ALLOCATE,
    ARRAY,
    AUX,
    CALL,
    CALL_WITH,
    CHILDREN,
    CONTAINER,
    DECREF,
    DICT,
    EMPTY,
    INCREF,
    KEPT,
    KIND,
    KNOWN_AVAL,
    KNOWN_DESCR,
    KNOWN_DIMS,
    KNOWN_NDIM,
    KNOWN_PLACE,
    LEAF,
    LENGTH,
    LIST,
    MAKER,
    NAMED,
    NDARRAY,
    NEW_DICT,
    NEW_LIST,
    NEW_NDARRAY,
    NEW_TUPLE,
    NONE,
    NOTHING,
    PIECES,
    REGISTERED,
    SET_ITEM,
    SPARES,
    TUPLE,
    TURN,
    UNFLATTEN,
)
from minijax.calls.object_layout import (
    AVAL,
    BUFFER,
    FLAGS,
    LIST_ITEMS,
    PLACEMENT,
    REFS,
    SIZE,
    TUPLE_ITEMS,
    TYPE,
    WEAK_REFERENCES,
    WRITEABLE,
)
from minijax.calls.words import call, half, room, word


def spare(known, around):
    """Return a result of an earlier call that is held nowhere any more, or 0."""
    items = word[word[known + SPARES] + LIST_ITEMS]
    i = 0
    while i < word[word[known + SPARES] + SIZE]:
        x = word[items + 8 * i]
        whole = word[x + TYPE] == word[around + ARRAY]
        if (
            whole
            and word[x + REFS] == 1
            and word[word[x + BUFFER] + REFS] == 1
            and word[x + WEAK_REFERENCES] == 0
            and unseen(word[x + BUFFER], word[known + PIECES])
        ):
            word[x + REFS] = 2
            return x
        i += 1
    return 0


def unseen(buffer, count):
    """Return whether the parts of a buffer are held by it alone."""
    while count > 0 and word[word[buffer + TUPLE_ITEMS + 8 * count - 8] + REFS] == 1:
        count += -1
    return count == 0


def keep(x, known, around):
    """Put a result on the list of those that may be used again one day."""
    spares = word[known + SPARES]
    if word[spares + SIZE] != 0:
        turn = word[known + TURN]
        place = word[spares + LIST_ITEMS] + 8 * turn
        word[known + TURN] = (turn + 1) & (KEPT - 1)
        before = word[place]
        word[place] = x
        call(word[around + INCREF], x)
        call(word[around + DECREF], before)
    return 0


def new_buffer(known, around):
    """Return a new array of NumPy, read-only, or 0 if there is no memory."""
    if word[known + MAKER] != 0:
        made = call(word[around + CALL], word[known + MAKER], word[around + EMPTY], 0)
    else:
        call(word[around + INCREF], word[known + KNOWN_DESCR])
        made = call(
            word[around + NEW_NDARRAY], word[around + NDARRAY],
            word[known + KNOWN_DESCR], word[known + KNOWN_NDIM],
            word[known + KNOWN_DIMS], 0, 0, 0, 0,
        )  # fmt: skip
    if made != 0:
        half[made + FLAGS] = half[made + FLAGS] - WRITEABLE
    return made


def new_parts(known, around):
    """Return a buffer for a result, a tuple if it is in parts; 0: no memory."""
    count = word[known + PIECES]
    if count == 0:
        return new_buffer(known, around)
    parts = call(word[around + NEW_TUPLE], count)
    while parts != 0 and count > 0:
        count += -1
        part = new_buffer(known, around)
        word[parts + TUPLE_ITEMS + 8 * count] = part
        if part == 0:
            call(word[around + DECREF], parts)
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
    x = call(word[around + ALLOCATE], word[around + ARRAY], 0)
    if x == 0:
        call(word[around + DECREF], buffer)
        return 0
    word[x + BUFFER] = buffer
    word[x + AVAL] = word[known + KNOWN_AVAL]
    word[x + PLACEMENT] = word[known + KNOWN_PLACE]
    call(word[around + INCREF], word[x + AVAL])
    call(word[around + INCREF], word[x + PLACEMENT])
    return x


def rebuilt(children, node, around):
    """Return a registered container of a list, which it takes; 0 is an error."""
    place = room(2)
    word[place] = word[node + AUX]
    word[place + 8] = children
    made = call(word[around + CALL_WITH], word[node + UNFLATTEN], place, 2, 0)
    call(word[around + DECREF], children)
    return made


def build(node, results, around):
    """Return the tree of the results, and empty their table; 0 is an error."""
    kind = word[node + KIND]
    length = word[node + LENGTH]
    if kind == LEAF:
        x = word[results + word[node + CONTAINER]]
        word[results + word[node + CONTAINER]] = 0
        return x
    if kind == NOTHING:
        call(word[around + INCREF], word[around + NONE])
        return word[around + NONE]
    if kind == TUPLE:
        tree = call(word[around + NEW_TUPLE], length)
    elif kind == NAMED:
        tree = call(word[around + ALLOCATE], word[node + CONTAINER], length)
    elif kind == DICT:
        tree = call(word[around + NEW_DICT])
    else:
        tree = call(word[around + NEW_LIST], length)
    if tree == 0:
        return 0
    i = 0
    while i < length:
        child = node + CHILDREN + 16 * i
        item = build(word[child], results, around)
        if item == 0:
            call(word[around + DECREF], tree)
            return 0
        if kind == DICT:
            call(word[around + SET_ITEM], tree, word[child + 8], item)
            call(word[around + DECREF], item)
        elif kind < LIST:  # a tuple, named or not
            word[tree + TUPLE_ITEMS + 8 * i] = item
        else:
            word[word[tree + LIST_ITEMS] + 8 * i] = item
        i += 1
    if kind == REGISTERED:
        return rebuilt(tree, node, around)
    return tree
