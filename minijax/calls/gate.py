"""The dispatch path (the gate): a warmed call of a jitted function, as machine code.

It looks at the arguments, takes the addresses of their numbers, has the program run,
and hands its results back. What it does not know, it leaves to Python.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes

from minijax.calls.gate_arguments import STATUS, children_of, number, take
from minijax.calls.gate_results import build, handle, new_result, rebuilt, spare
from minijax.calls.gate_tables import Around, Known, Record
from minijax.calls.object_layout import At
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
    around = word[record + Record.around]
    program = word[record + Record.program]
    context = word[record + Record.context]
    if word[record + Record.long] == 0:
        return call(program, table, arena, context) & STATUS
    thread = call(word[around + Around.unlock])
    status = call(program, table, arena, context) & STATUS
    call(word[around + Around.lock], thread)
    return status


def result_in(known, held, around):
    """Return an array for a result, in an argument's memory if it takes that; or 0."""
    source = word[known + Known.source]
    if source >= 0:
        buffer = word[held + source]
        call(word[around + Around.incref], buffer)
        return handle(buffer, known, around)
    x = spare(known, around)
    if x == 0:
        return new_result(known, around)
    return x


def address_results(buffer, count, record, place):
    """Note where the numbers of a result go, those of its parts row by row."""
    if count == 0:
        word[place] = word[buffer + At.data]
        return 0
    item = buffer + At.tuple_items
    end = item + 8 * count
    while item < end:
        word[place] = word[word[item] + At.data]
        place += 0 - word[record + Record.span]
        item += 8
    return 0


def make_results(record, table, held):
    """Find or make an array for each result, and note it; return 0 if it fails."""
    known = word[record + Record.result]
    i = word[record + Record.results]
    while i < word[record + Record.span]:
        x = result_in(known, held, word[record + Record.around])
        if x == 0:
            drop = word[word[record + Record.around] + Around.decref]
            each(drop, held + word[record + Record.results], held + i)
            return 0
        word[held + i] = x
        count = word[known + Known.pieces]
        address_results(word[x + At.buffer], count, record, table + i)
        known += Known.size
        i += 8
    return 1


def finish(record, table, held, arena):
    """Return the tree of results when all arguments are there; 0 is an error."""
    around = word[record + Record.around]
    results = held + word[record + Record.results]
    end = held + word[record + Record.span]
    give_all(record, held)
    if make_results(record, table, held) == 0:
        return 0
    if run(record, table, arena) == 0:
        tree = build(word[record + Record.structure], results, around)
        if tree == 0:
            each(word[around + Around.decref], results, end)
        return tree
    each(word[around + Around.decref], results, end)
    failure = word[record + Record.failure]
    return call(word[around + Around.call], failure, word[around + Around.empty], 0)


def alone(buffer, around):
    """Return whether a buffer is seen by its array alone, while the gate holds it.

    That is enough for a tuple of parts, whose memory no result takes.
    """
    if word[buffer + At.refs] != 2:
        return 0
    if word[buffer + At.type] == word[around + Around.pair]:
        return 1
    base = word[buffer + At.base]
    while base != 0:
        kind = word[base + At.type]
        if kind == word[around + Around.heap] or kind == word[around + Around.pages]:
            return 1
        if kind != word[around + Around.ndarray] or word[base + At.refs] != 1:
            return 0
        base = word[base + At.base]
    return 1


def may_give(record, held):
    """Return whether the memory of all arguments that are given up may be taken."""
    place = word[record + Record.given]
    while place < word[record + Record.given_end]:
        leaf = held + word[place]
        if word[leaf + word[record + Record.span]] == 0:
            return 0
        if alone(word[leaf], word[record + Record.around]) == 0:
            return 0
        place += 8
    return 1


def give_all(record, held):
    """Mark the arguments that are given up; their buffers are held elsewhere."""
    around = word[record + Record.around]
    place = word[record + Record.given]
    while place < word[record + Record.given_end]:
        leaf = held + word[place]
        x = word[leaf + word[record + Record.span]]
        call(word[around + Around.incref], word[around + Around.donated])
        call(word[around + Around.incref], word[around + Around.none])
        word[x + At.type] = word[around + Around.donated]
        word[x + At.buffer] = word[around + Around.none]
        call(word[around + Around.decref], word[leaf])
        call(word[around + Around.decref], word[around + Around.array])
        place += 8
    return 0


def take_all(args, keywords, record, table):
    """Take all arguments apart; return 0 if some are of another kind."""
    out = table
    i = 0
    while i < word[record + Record.count] and out != 0:
        node = word[word[record + Record.arguments] + 8 * i]
        out = take(word[args + 8 * i], node, record, out)
        i += 1
    if out != 0 and word[record + Record.keywords] != 0:
        out = take(keywords, word[record + Record.keywords], record, out)
    return out


def let_go(place, end, around):
    """Let go of what registered containers were taken apart into."""
    while place < end:
        pair = word[place]
        word[place] = 0
        call(word[around + Around.decref], pair)
        place += 8
    return 0


def attempt(record, args, keywords):
    """Return the result of a call if it is one of this kind; 0 is an error."""
    around = word[record + Record.around]
    table = word[record + Record.places]
    held = table + 2 * word[record + Record.span]
    arena = word[record + Record.arena]
    word[record + Record.arena] = 0
    word[record + Record.taken] = table
    result = MISS
    if take_all(args, keywords, record, table) != 0:
        if may_give(record, held) != 0:
            result = finish(record, table, held, arena)
    elif call(word[around + Around.occurred]) != 0:
        result = 0
    each(word[around + Around.decref], held, held + word[record + Record.taken] - table)
    let_go(word[record + Record.pairs], word[record + Record.pairs_end], around)
    word[record + Record.arena] = arena
    return result


def variable(name, around):
    """Return the value of a context variable, which is held elsewhere."""
    place = room(1)
    call(word[around + Around.get_variable], name, 0, place)
    call(word[around + Around.decref], word[place])
    return word[place]


def plain(around):
    """Return whether this thread evaluates, with the switches of the process."""
    if variable(word[around + Around.trace], around) != word[around + Around.evaluator]:
        return 0
    overrides = variable(word[around + Around.overrides], around)
    if overrides != word[around + Around.unchanged]:
        return 0
    return word[word[around + Around.watchers] + At.size] == 0


def fitting(record, args, kwargs):
    """Return whether a record is free, and for such a call as far as one can see."""
    now = word[word[word[record + Record.around] + Around.config] + At.config_values]
    if word[record + Record.switches] != now or word[record + Record.arena] == 0:
        return 0
    if word[args + At.size] != word[record + Record.count]:
        return 0
    if kwargs == 0 or word[kwargs + At.size] == 0:
        return word[record + Record.keywords] == 0
    return word[record + Record.keywords] != 0


def answer(record, args, kwargs):
    """Return the result of a call by the first record that fits, or `MISS`.

    A user's function may run meanwhile, and clear the chain: the next record is the
    one that is the next one afterwards.
    """
    while record != 0:
        following = word[record + Record.next]
        if fitting(record, args, kwargs):
            around = word[record + Record.around]
            owner = word[record + Record.owner]
            call(word[around + Around.incref], owner)
            result = attempt(record, args + At.tuple_items, kwargs)
            following = word[record + Record.next]
            call(word[around + Around.decref], owner)
            if result != MISS:
                return result
        record = following
    return MISS


def gate(self, args, kwargs):
    """Return the result of a call of a jitted function; 0 is an error."""
    head = word[word[self + At.gate] + At.data]
    around = word[head + Record.around]
    if plain(around):
        result = answer(word[head + Record.next], args, kwargs)
        if result != MISS:
            return result
    method = call(word[around + Around.new_method], word[around + Around.python], self)
    if method == 0:
        return 0
    result = call(word[around + Around.call], method, args, kwargs)
    call(word[around + Around.decref], method)
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
