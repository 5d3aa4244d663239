# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The dispatch path (the gate): a warmed call of a jitted function, as machine code.

It looks at the arguments, takes the addresses of their numbers, has the program run,
and hands its results back. What it does not know, it leaves to Python.
"""

import ctypes

from minijax.calls.gate_arguments import STATUS, children_of, number, take
from minijax.calls.gate_results import build, handle, new_result, rebuilt, spare
from minijax.calls.gate_tables import (
    ARENA,
    ARGUMENTS,
    AROUND,
    ARRAY,
    CALL,
    CONFIG,
    CONTEXT,
    COUNT,
    DECREF,
    DONATED,
    EMPTY,
    EVALUATOR,
    FAILURE,
    GET_VARIABLE,
    GIVEN,
    GIVEN_END,
    HEAP,
    INCREF,
    KEYWORDS,
    LOCK,
    LONG,
    NDARRAY,
    NEW_METHOD,
    NEXT,
    NEXT_VALUE,
    NONE,
    OCCURRED,
    OVERRIDES,
    OWNER,
    PAGES,
    PAIR,
    PAIRS,
    PAIRS_END,
    PIECES,
    PLACES,
    PROGRAM,
    PYTHON,
    RESULT,
    RESULTS,
    SOURCE,
    SPAN,
    STRUCTURE,
    SWITCHES,
    TAKEN,
    TRACE,
    UNCHANGED,
    UNLOCK,
    WATCHERS,
)
from minijax.calls.object_layout import (
    BASE,
    BUFFER,
    CONFIG_VALUES,
    DATA,
    GATE,
    REFS,
    SIZE,
    TUPLE_ITEMS,
    TYPE,
)
from minijax.calls.words import WordsLibrary, call, half, llvm_text, room, word

MISS = 1


def each(function, start, end):
    """Call a function with each word of a table."""
    while start < end:
        call(function, word[start])
        start += 8
    return 0


def run(record, table, arena):
    """Run the program on a table of addresses, and return its status."""
    around = word[record + AROUND]
    program = word[record + PROGRAM]
    context = word[record + CONTEXT]
    if word[record + LONG] == 0:
        return call(program, table, arena, context) & STATUS
    thread = call(word[around + UNLOCK])
    status = call(program, table, arena, context) & STATUS
    call(word[around + LOCK], thread)
    return status


def result_in(known, held, around):
    """Return an array for a result, in an argument's memory if it takes that; or 0."""
    source = word[known + SOURCE]
    if source >= 0:
        buffer = word[held + source]
        call(word[around + INCREF], buffer)
        return handle(buffer, known, around)
    x = spare(known, around)
    if x == 0:
        return new_result(known, around)
    return x


def address_results(buffer, count, record, place):
    """Note where the numbers of a result go, those of its parts row by row."""
    if count == 0:
        word[place] = word[buffer + DATA]
        return 0
    item = buffer + TUPLE_ITEMS
    end = item + 8 * count
    while item < end:
        word[place] = word[word[item] + DATA]
        place += 0 - word[record + SPAN]
        item += 8
    return 0


def make_results(record, table, held):
    """Find or make an array for each result, and note it; return 0 if it fails."""
    known = word[record + RESULT]
    i = word[record + RESULTS]
    while i < word[record + SPAN]:
        x = result_in(known, held, word[record + AROUND])
        if x == 0:
            drop = word[word[record + AROUND] + DECREF]
            each(drop, held + word[record + RESULTS], held + i)
            return 0
        word[held + i] = x
        address_results(word[x + BUFFER], word[known + PIECES], record, table + i)
        known += NEXT_VALUE
        i += 8
    return 1


def finish(record, table, held, arena):
    """Return the tree of results when all arguments are there; 0 is an error."""
    around = word[record + AROUND]
    results = held + word[record + RESULTS]
    give_all(record, held)
    if make_results(record, table, held) == 0:
        return 0
    if run(record, table, arena) == 0:
        tree = build(word[record + STRUCTURE], results, around)
        if tree == 0:
            each(word[around + DECREF], results, held + word[record + SPAN])
        return tree
    each(word[around + DECREF], results, held + word[record + SPAN])
    return call(word[around + CALL], word[record + FAILURE], word[around + EMPTY], 0)


def alone(buffer, around):
    """Return whether a buffer is seen by its array alone, while the gate holds it.

    That is enough for a tuple of parts, whose memory no result takes.
    """
    if word[buffer + REFS] != 2:
        return 0
    if word[buffer + TYPE] == word[around + PAIR]:
        return 1
    base = word[buffer + BASE]
    while base != 0:
        kind = word[base + TYPE]
        if kind == word[around + HEAP] or kind == word[around + PAGES]:
            return 1
        if kind != word[around + NDARRAY] or word[base + REFS] != 1:
            return 0
        base = word[base + BASE]
    return 1


def may_give(record, held):
    """Return whether the memory of all arguments that are given up may be taken."""
    place = word[record + GIVEN]
    while place < word[record + GIVEN_END]:
        leaf = held + word[place]
        if word[leaf + word[record + SPAN]] == 0:
            return 0
        if alone(word[leaf], word[record + AROUND]) == 0:
            return 0
        place += 8
    return 1


def give_all(record, held):
    """Mark the arguments that are given up; their buffers are held elsewhere."""
    around = word[record + AROUND]
    place = word[record + GIVEN]
    while place < word[record + GIVEN_END]:
        leaf = held + word[place]
        x = word[leaf + word[record + SPAN]]
        call(word[around + INCREF], word[around + DONATED])
        call(word[around + INCREF], word[around + NONE])
        word[x + TYPE] = word[around + DONATED]
        word[x + BUFFER] = word[around + NONE]
        call(word[around + DECREF], word[leaf])
        call(word[around + DECREF], word[around + ARRAY])
        place += 8
    return 0


def take_all(args, keywords, record, table):
    """Take all arguments apart; return 0 if some are of another kind."""
    out = table
    i = 0
    while i < word[record + COUNT] and out != 0:
        node = word[word[record + ARGUMENTS] + 8 * i]
        out = take(word[args + 8 * i], node, record, out)
        i += 1
    if out != 0 and word[record + KEYWORDS] != 0:
        out = take(keywords, word[record + KEYWORDS], record, out)
    return out


def let_go(place, end, around):
    """Let go of what registered containers were taken apart into."""
    while place < end:
        pair = word[place]
        word[place] = 0
        call(word[around + DECREF], pair)
        place += 8
    return 0


def attempt(record, args, keywords):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    around = word[record + AROUND]
    table = word[record + PLACES]
    held = table + 2 * word[record + SPAN]
    arena = word[record + ARENA]
    word[record + ARENA] = 0
    word[record + TAKEN] = table
    result = MISS
    if take_all(args, keywords, record, table) != 0:
        if may_give(record, held) != 0:
            result = finish(record, table, held, arena)
    elif call(word[around + OCCURRED]) != 0:
        result = 0
    each(word[around + DECREF], held, held + word[record + TAKEN] - table)
    let_go(word[record + PAIRS], word[record + PAIRS_END], around)
    word[record + ARENA] = arena
    return result


def variable(name, around):
    """Return the value of a context variable, which is held elsewhere."""
    place = room(1)
    call(word[around + GET_VARIABLE], name, 0, place)
    call(word[around + DECREF], word[place])
    return word[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if variable(word[around + TRACE], around) != word[around + EVALUATOR]:
        return 0
    if variable(word[around + OVERRIDES], around) != word[around + UNCHANGED]:
        return 0
    return word[word[around + WATCHERS] + SIZE] == 0


def fitting(record, args, kwargs):
    """Return whether a record is free, and for such a call as far as one can see."""
    now = word[word[word[record + AROUND] + CONFIG] + CONFIG_VALUES]
    if word[record + SWITCHES] != now or word[record + ARENA] == 0:
        return 0
    if word[args + SIZE] != word[record + COUNT]:
        return 0
    if kwargs == 0 or word[kwargs + SIZE] == 0:
        return word[record + KEYWORDS] == 0
    return word[record + KEYWORDS] != 0


def answer(record, args, kwargs):
    """Return the result of a call by the first record that fits, or `MISS`.

    A user's function may run meanwhile, and clear the chain: the next record is the
    one that is the next one afterwards.
    """
    while record != 0:
        following = word[record + NEXT]
        if fitting(record, args, kwargs):
            around = word[record + AROUND]
            owner = word[record + OWNER]
            call(word[around + INCREF], owner)
            result = attempt(record, args + TUPLE_ITEMS, kwargs)
            following = word[record + NEXT]
            call(word[around + DECREF], owner)
            if result != MISS:
                return result
        record = following
    return MISS


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = word[word[self + GATE] + DATA]
    around = word[head + AROUND]
    if plain(around):
        result = answer(word[head + NEXT], args, kwargs)
        if result != MISS:
            return result
    method = call(word[around + NEW_METHOD], word[around + PYTHON], self)
    if method == 0:
        return 0
    result = call(word[around + CALL], method, args, kwargs)
    call(word[around + DECREF], method)
    return result


def successor(table, arena, context):
    """A program for a trial: the next integer of 32 bits."""
    half[word[table + 8]] = half[word[table]] + 1
    return 0


class Door:
    """Machine code that answers calls, and a program to try it with.

    Attributes:
      address, trial: of the two functions.
      call: the first, of an object, a tuple, and None.
    """

    def __init__(self):
        rare = number, new_result, children_of, rebuilt  # not inlined: out of the way
        self.library = WordsLibrary(llvm_text(gate, successor, *rare))
        self.address, self.trial = map(self.library.place, ("gate", "successor"))
        words = [ctypes.py_object] * 3 + [ctypes.c_void_p]
        self.call = ctypes.PYFUNCTYPE(*words)(self.address)
