# Made from chapters/19d_calls.md by `make chapter`;
# edit the chapter, not this file.
"""The gate: what a warmed call of a jitted function does, as machine code.

It looks at the arguments, takes the addresses of their numbers, has the program run,
and hands its results back. What it does not know, it leaves to Python.
"""

import ctypes

from minijax.gate_arguments import fits, integer, number, take, take_leaf
from minijax.gate_results import build, keep, new_buffer, new_result, spare
from minijax.gate_tables import (
    ARENA,
    ARGUMENTS,
    AROUND,
    CALL,
    CONFIG,
    CONTEXT,
    COUNT,
    DECREF,
    EVALUATOR,
    FAILURE,
    GET_VARIABLE,
    INCREF,
    IN_PYTHON,
    LOCK,
    LONG,
    NEW_METHOD,
    NEXT,
    NEXT_VALUE,
    NO_ARGUMENTS,
    NO_OVERRIDES,
    OVERRIDES,
    OWNER,
    PROGRAM,
    RESULT,
    RESULTS,
    SPAN,
    STRUCTURE,
    SWITCHES,
    TRACE,
    UNLOCK,
    WATCHERS,
)
from minijax.machine import Library
from minijax.object_layout import BUFFER, CONFIG_VALUES, DATA, GATE, SIZE, TUPLE_ITEMS
from minijax.words import call, llvm_text, room, word

MISS = 1


def each(function, start, end):
    """Call a function with each word of a table."""
    while start < end:
        call(function, word[start])
        start += 8
    return 0


def run(record, table):
    """Run the program on a table of addresses, and return its status."""
    around = word[record + AROUND]
    program = word[record + PROGRAM]
    arena = word[record + ARENA]
    context = word[record + CONTEXT]
    held = table + 2 * word[record + SPAN]
    word[record + ARENA] = 0
    if word[record + LONG] == 0:
        status = call(program, table, arena, context)
    else:
        each(word[around + INCREF], held, held + word[record + RESULTS])
        thread = call(word[around + UNLOCK])
        status = call(program, table, arena, context)
        call(word[around + LOCK], thread)
        each(word[around + DECREF], held, held + word[record + RESULTS])
    word[record + ARENA] = arena
    return status & 0xFFFFFFFF


def make_results(record, table):
    """Write the addresses of results behind those of the arguments; return 0 if not."""
    around = word[record + AROUND]
    out = table + word[record + RESULTS]
    known = word[record + RESULT]
    while out < table + word[record + SPAN]:
        x = spare(known, around)
        if x == 0:
            x = new_result(known, around)
        word[out + 2 * word[record + SPAN]] = x
        if x == 0:
            start = table + 2 * word[record + SPAN] + word[record + RESULTS]
            each(word[around + DECREF], start, out + 2 * word[record + SPAN])
            return 0
        word[out] = word[word[x + BUFFER] + DATA]
        known += NEXT_VALUE
        out += 8
    return 1


def attempt(record, args, count):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    if count != word[record + COUNT] or word[record + ARENA] == 0:
        return MISS
    span = word[record + SPAN]
    around = word[record + AROUND]
    table = room(3 * (span >> 3))
    out = table
    i = 0
    while i < count:
        node = word[word[record + ARGUMENTS] + 8 * i]
        out = take(word[args + 8 * i], node, record, out)
        if out == 0:
            return MISS
        i += 1
    if make_results(record, table) == 0:
        return 0
    call(word[around + INCREF], word[record + OWNER])
    status = run(record, table)
    results = table + 2 * span + word[record + RESULTS]
    if status == 0:
        result = build(word[record + STRUCTURE], results, around)
    else:
        each(word[around + DECREF], results, table + 3 * span)
        result = call(word[around + CALL], word[record + FAILURE], word[around + NO_ARGUMENTS], 0)
    call(word[around + DECREF], word[record + OWNER])
    return result


def variable(name, around):
    """Return the value of a context variable, which somebody else holds."""
    place = room(1)
    call(word[around + GET_VARIABLE], name, 0, place)
    call(word[around + DECREF], word[place])
    return word[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if variable(word[around + TRACE], around) != word[around + EVALUATOR]:
        return 0
    if variable(word[around + OVERRIDES], around) != word[around + NO_OVERRIDES]:
        return 0
    return word[word[around + WATCHERS] + SIZE] == 0


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = word[word[self + GATE] + DATA]
    around = word[head + AROUND]
    if (kwargs == 0 or word[kwargs + SIZE] == 0) and plain(around):
        record = word[head + NEXT]
        switches = word[word[around + CONFIG] + CONFIG_VALUES]
        while record != 0:
            if word[record + SWITCHES] == switches:
                result = attempt(record, args + TUPLE_ITEMS, word[args + SIZE])
                if result != MISS:
                    return result
            record = word[record + NEXT]
    method = call(word[around + NEW_METHOD], word[around + IN_PYTHON], self)
    if method == 0:
        return 0
    result = call(word[around + CALL], method, args, kwargs)
    call(word[around + DECREF], method)
    return result


GATE_FUNCTIONS = (
    fits, integer, number, take_leaf, take, spare, keep, new_buffer, new_result, build, each, run,
    make_results, attempt, variable, plain, gate,
)  # fmt: skip


class Door:
    """Machine code that answers calls.

    Attributes:
      address: of the function.
      call: the function, of an object, a tuple, and None.
    """

    def __init__(self, library, name):
        self.library, self.address = library, library.engine.get_function_address(name)
        words = [ctypes.py_object] * 3 + [ctypes.c_void_p]
        self.call = ctypes.PYFUNCTYPE(*words)(self.address)


def gate_library():
    """Return the `Door` of the gate."""
    return Door(Library(llvm_text(*GATE_FUNCTIONS)), "gate")
