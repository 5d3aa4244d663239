"""Replicas in machine code: how they meet, exchange, reduce, and take turns.

A *group* is a table of words for those who meet: how many have arrived, which turn it
is, and a slot for each. A replica knows its groups by *entries*, two words: the address
of the group, and its own number in it. The language is that of `words`.

References: non-temporal stores, in the LLVM Language Reference,, ``MOVNTDQ``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import zlib

from minijax.cpu_backend.program_codegen import MEMCPY
from minijax.dispatch.lowlevel import call, room, word
from minijax.threads.atomics import Shared, added, pause, put, quotient, seen, swapped
from minijax.threads.pool import rest

# What replicas do in machine code: they meet, exchange, and wait for work.

# A group. Each of the first two has a line of its own, as all write there.
ARRIVED, TURN, SIZE, HALL = 0, 64, 128, 136
SLOTS, SLOT, SMALL = 192, 1088, 512
# A slot; for two turns, as a quick replica may be one turn ahead of a slow one.
ARRIVALS, SOURCE, LABEL, RESULT, NAPS, BESIDE = 0, 8, 24, 40, 48, 64
KIND = 4294967295  # the bits of a label in which replicas have to agree
# An entry has the group, -1 if it belongs to several processes; the number in it; and,
# for these, where the function is that exchanges with the others.
ELSEWHERE = 16

# What all groups of a team share, its hall.
POISON, SPINS, YIELDS, ALERT = 0, 64, 72, 80
YIELD, ACQUIRE, ACQUIRE_TIMED, RELEASE = 96, 104, 112, 120
COPY, FILL, PATIENCE, KERNELS, PHASE, PAST, CACHED = range(128, 184, 8)
BRING, TAKE, LATER = 1, 2, -2  # phases of a meeting in turn; what it answers first
WHILE = 20000  # microseconds of a nap
# Several arrays at one meeting: a row for each, with source, result and so on.
ROW, INTO, ELEMENTS, WIDTH, COMBINE, PIECE = 48, 8, 16, 24, 32, 40
STRANGERS = 1  # why the patience of Python is asked for: labels differ

# A team, and the line of each of its workers.
DONE, FINISHED, COUNT, STOP, PROGRAM, THEIRS = 0, 8, 16, 64, 128, 136
WORKERS, LINE = 192, 128
GO, ASLEEP, BED, MEMORY, ARENA, CONTEXT, STATUS = 0, 8, 16, 64, 72, 80, 88


def ask(hall, entry, why):
    """Ask Python whether to go on waiting; return 1 to give up, and let all know.

    An interrupt before the first line of the function leaves the answer as it is.
    """
    answer = room(1)
    word[answer] = 1
    call(word[hall + PATIENCE], entry, why, answer)
    if word[answer] != 0:
        put(hall + POISON, 1)
    return word[answer]


def nap(hall, place, address, known, entry):
    """Sleep until woken, or for a while; return 1 to give up."""
    put(place, 1)
    if seen(address) != known and swapped(place, 1, 0) != 0:
        return 0
    if call(word[hall + ACQUIRE_TIMED], word[place + 8], WHILE, 0) & KIND:
        return 0
    if swapped(place, 1, 0) != 0:
        return ask(hall, entry, 0)
    return call(word[hall + ACQUIRE], word[place + 8], 1) & 0


def wake_up(hall, place):
    """Wake the one who naps at a place, if it does."""
    if seen(place) != 0 and swapped(place, 1, 0) != 0:
        call(word[hall + RELEASE], word[place + 8])
    return 0


def wait(hall, place, address, known, entry, yields):
    """Wait until a word is not what it was; return 1 to give up.

    First go on looking, then let others have the core some times, then sleep.
    """
    turns = 0
    yields += word[hall + SPINS]
    while seen(address) == known:
        if entry != 0 and seen(hall + POISON) != 0:
            return 1
        turns += 1
        if turns < word[hall + SPINS]:
            pause()
        elif turns < yields:
            call(word[hall + YIELD])
        elif nap(hall, place, address, known, entry) != 0 and entry != 0:
            return 1
    return 0


def meet(entry, size):
    """Wait until all replicas of a group are there; return 1 if the run has failed.

    Where something small is exchanged, the others will not take long.
    """
    group = word[entry]
    hall = word[group + HALL]
    known = seen(group + TURN)
    slot = group + SLOTS
    if added(group + ARRIVED, 1) + 1 < word[group + SIZE]:
        slot += word[entry + 8] * SLOT
        yields = 0
        if size <= SMALL:
            yields = word[hall + YIELDS]
        return wait(hall, slot + NAPS, group + TURN, known, entry, yields)
    put(group + ARRIVED, 0)
    added(group + TURN, 1)
    end = slot + word[group + SIZE] * SLOT
    while slot < end:
        wake_up(hall, slot + NAPS)
        slot += SLOT
    return seen(hall + POISON)


def arrive(entry, source, size, result, label):
    """Bring a source of so many bytes, and meet; return which side counts, or -1.

    A small one is copied, so that its memory can be used again at once. If replicas
    take turns, the first call only brings the source, and the second finds all there.
    """
    group = word[entry]
    slot = group + SLOTS + word[entry + 8] * SLOT
    phase = word[word[group + HALL] + PHASE]
    if phase == TAKE:
        return 0
    if phase == BRING:
        word[slot + SOURCE] = source
        word[slot + RESULT] = result
        return LATER
    turn = word[slot + ARRIVALS] + 1
    side = 8 * (turn & 1)
    if size <= SMALL:
        copy = slot + BESIDE + (turn & 1) * SMALL
        call(word[word[group + HALL] + COPY], copy, source, size)
        source = copy
    word[slot + SOURCE + side] = source
    word[slot + LABEL + side] = label
    word[slot + RESULT] = result
    put(slot + ARRIVALS, turn)
    if meet(entry, size) != 0:
        return -1
    other = group + SLOTS
    end = other + word[group + SIZE] * SLOT
    while other < end:
        if (word[other + LABEL + side] & KIND) != (label & KIND):
            ask(word[group + HALL], entry, STRANGERS)
            return -1
        other += SLOT
    return side


def leave(entry, size):
    """Wait until all have read a source of so many bytes; a small one was copied."""
    if size <= SMALL or word[word[word[entry] + HALL] + PHASE] != 0:
        return 0
    return meet(entry, size)


def for_oneself(group, size):
    """Return whether each combines all sources of so many bytes, as they are copied."""
    return (size <= SMALL) & (word[word[group + HALL] + PHASE] == 0)


def fold(group, side, result, start, lo, hi, width, combine):
    """Combine elements of all sources, from `start` bytes on, into a result."""
    slot = group + SLOTS
    end = slot + word[group + SIZE] * SLOT
    source = word[slot + SOURCE + side] + start
    size = (hi - lo) * width
    at = lo * width
    call(word[word[group + HALL] + COPY], result + at, source + at, size)
    slot += SLOT
    while slot < end:
        call(combine, result, word[slot + SOURCE + side] + start, lo, hi)
        slot += SLOT
    return 0


def copier(group, size):
    """Return what copies to results of so many bytes each, as to what caches hold."""
    hall = word[group + HALL]
    if 2 * size * word[group + SIZE] > word[hall + CACHED]:
        return word[hall + PAST]
    return word[hall + COPY]


def hand_out(group, mine, from_, size, copy):
    """Copy some bytes of one's result to the results of all others."""
    slot = group + SLOTS
    end = slot + word[group + SIZE] * SLOT
    while slot < end:
        if word[slot + RESULT] != mine:
            call(copy, word[slot + RESULT] + from_, mine + from_, size)
        slot += SLOT
    return 0


def exchange_fold(entry, source, result, size, width, combine, grain, label):
    """All get the combination of all sources, of `size` elements.

    Small ones each replica combines itself. Of large ones each combines a part, and
    writes it to the results of all others while it is still close.
    """
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, source, result, label)
    side = arrive(entry, source, size * width, result, label)
    if side < 0:
        return side & 1
    if for_oneself(group, size * width):
        return fold(group, side, result, 0, 0, size, width, combine)
    part = quotient(quotient(size, grain), word[group + SIZE]) * grain
    lo = word[entry + 8] * part
    end = lo + part
    if end > size:
        end = size
    copy = copier(group, size * width)
    while lo < end:
        hi = lo + grain
        if hi > end:
            hi = end
        fold(group, side, result, 0, lo, hi, width, combine)
        hand_out(group, result, lo * width, (hi - lo) * width, copy)
        lo = hi
    return leave(entry, size * width)


def exchange_scatter(entry, source, result, size, width, combine, grain, label):
    """Each gets a part, of `size` elements, of the combination of all sources."""
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, source, result, label)
    whole = word[group + SIZE] * size * width
    side = arrive(entry, source, whole, result, label)
    if side < 0:
        return side & 1
    lo = 0
    while lo < size:
        hi = lo + grain
        if hi > size:
            hi = size
        start = word[entry + 8] * size * width
        fold(group, side, result, start, lo, hi, width, combine)
        lo = hi
    return leave(entry, whole)


def exchange_all(entry, source, result, size, label):
    """All get all sources, one after the other, of `size` bytes each."""
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, source, result, label)
    side = arrive(entry, source, size, result, label)
    if side < 0:
        return side & 1
    slot = group + SLOTS
    end = slot + word[group + SIZE] * SLOT
    while slot < end:
        call(word[word[group + HALL] + COPY], result, word[slot + SOURCE + side], size)
        result += size
        slot += SLOT
    return leave(entry, size)


def exchange_parts(entry, source, result, size, label):
    """Each gets its part of all sources, one after the other, of `size` bytes each."""
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, source, result, label)
    whole = word[group + SIZE] * size
    side = arrive(entry, source, whole, result, label)
    if side < 0:
        return side & 1
    slot = group + SLOTS
    end = slot + word[group + SIZE] * SLOT
    while slot < end:
        part = word[slot + SOURCE + side] + word[entry + 8] * size
        call(word[word[group + HALL] + COPY], result, part, size)
        result += size
        slot += SLOT
    return leave(entry, whole)


def exchange_one(entry, source, result, size, table, label):
    """Each gets the source of the replica that a table names, or zeros for -1."""
    group = word[entry]
    if word[entry] < 0:
        return call(word[entry + ELSEWHERE], entry, source, result, label)
    side = arrive(entry, source, size, result, label)
    if side < 0:
        return side & 1
    number = -1
    if word[entry + 8] < word[table]:
        number = word[table + 8 + 8 * word[entry + 8]]
    if number >= 0:
        found = word[group + SLOTS + number * SLOT + SOURCE + side]
        call(word[word[group + HALL] + COPY], result, found, size)
    else:
        call(word[word[group + HALL] + FILL], result, 0, size)
    return leave(entry, size)


def perform(team, me):
    """Run the program of a team once, as one of its replicas."""
    program = word[team + PROGRAM]
    status = call(program, word[me + MEMORY], word[me + ARENA], word[me + CONTEXT])
    word[me + STATUS] = status & KIND
    return 0


def attend(team, me):
    """Be a replica whenever one is needed, until the team stops."""
    hall = word[team + THEIRS]
    known = 0
    while seen(team + STOP) == 0:
        turns = 0
        now = seen(me + GO)
        while now == known and turns < word[hall + ALERT]:
            if turns < word[hall + SPINS]:
                pause()
            else:
                call(word[hall + YIELD])
            turns += 1
            now = seen(me + GO)
        if now == known:
            rest(me + ASLEEP, me + GO, known, word[hall + ACQUIRE])
            now = seen(me + GO)
        if now != known and seen(team + STOP) == 0:
            perform(team, me)
            if added(team + DONE, 1) + 1 == word[team + COUNT]:
                added(team + FINISHED, 1)
                wake_up(hall, team + WORKERS + ASLEEP)
        known = now
    return 0


def rouse(team, count):
    """Tell so many workers, the first ones, that there is something to do."""
    hall = word[team + THEIRS]
    me = team + WORKERS
    end = me + count * LINE
    while me < end:
        me += LINE
        added(me + GO, 1)
        wake_up(hall, me + ASLEEP)
    return 0


def conduct(team, count):
    """Run the program by so many workers and by oneself; return whether it failed.

    The threads that share out kernels rest meanwhile.
    """
    hall = word[team + THEIRS]
    resting = 0
    if count > 0:
        resting = swapped(word[hall + KERNELS] + Shared.busy, 0, 1)
    word[team + COUNT] = count
    put(team + DONE, 0)
    known = seen(team + FINISHED)
    rouse(team, count)
    me = team + WORKERS
    perform(team, me)
    if count > 0:
        wait(hall, me + ASLEEP, team + FINISHED, known, 0, word[hall + YIELDS])
    if resting != 0:
        put(word[hall + KERNELS] + Shared.busy, 0)
    failed = 0
    end = me + count * LINE
    while me <= end:
        failed = failed + word[me + STATUS]
        me += LINE
    return failed


# Replicas that take turns, in the language of `words`.

# Parts of the program, contexts, and how far it is from one replica to the next.
(
    IN_HALL, FIRST, PARTS, PARTS_END, CONTEXTS, CONTEXTS_END, SIZE_OF_CONTEXT,
    SIZE_OF_ROW, SIZE_OF_SPACE, TURNS,
) = range(0, 80, 8)  # fmt: skip


def take_turns(memory, arena, sitting):
    """Run a program for all replicas: each part by one of them after the other."""
    part = word[sitting + PARTS]
    phase = word[sitting + FIRST]
    while part < word[sitting + PARTS_END]:
        word[word[sitting + IN_HALL] + PHASE] = phase
        phase = BRING + TAKE - phase
        row = memory
        space = arena
        context = word[sitting + CONTEXTS]
        while context < word[sitting + CONTEXTS_END]:
            call(word[part], row, space, context)
            row += word[sitting + SIZE_OF_ROW]
            space += word[sitting + SIZE_OF_SPACE]
            context += word[sitting + SIZE_OF_CONTEXT]
        part += 8
    return 0


# Copies that go past the caches, in the language of LLVM.

PAST_CACHES = f"""
declare void {MEMCPY}(i8*, i8*, i64, i1)

define i64 @copy_past_caches(i64 %to, i64 %from, i64 %size) nounwind {{
entry:
  %both = or i64 %to, %size
  %rest = and i64 %both, 63
  %lines = icmp eq i64 %rest, 0
  br i1 %lines, label %test, label %other
test:
  %done = phi i64 [ 0, %entry ], [ %more, %line ]
  %left = icmp slt i64 %done, %size
  br i1 %left, label %line, label %last
line:
  %x = add i64 %from, %done
  %y = add i64 %to, %done
  %source = inttoptr i64 %x to <8 x i64>*
  %target = inttoptr i64 %y to <8 x i64>*
  %found = load <8 x i64>, <8 x i64>* %source, align 1
  store <8 x i64> %found, <8 x i64>* %target, align 64, !nontemporal !{{i32 1}}
  %more = add i64 %done, 64
  br label %test
last:
  fence seq_cst
  br label %end
other:
  %read = inttoptr i64 %from to i8*
  %written = inttoptr i64 %to to i8*
  call void {MEMCPY}(i8* %written, i8* %read, i64 %size, i1 false)
  br label %end
end:
  ret i64 0
}}
"""


# All-reduce of several arrays at one meeting, in machine code.


def fold_copies(entry, table, total, end, label):
    """Combine small sources: one copy holds them all, each from a line on."""
    group = word[entry]
    packed = room(64)
    at = packed
    row = table
    while row < end:
        size = word[row + ELEMENTS] * word[row + WIDTH]
        call(word[word[group + HALL] + COPY], at, word[row], size)
        at += (size + 63) & -64
        row += ROW
    side = arrive(entry, packed, total, 0, label)
    if side < 0:
        return side & 1
    start = 0
    row = table
    while row < end:
        size = word[row + ELEMENTS]
        fold(group, side, word[row + INTO], start, 0, size, word[row + WIDTH],
             word[row + COMBINE])  # fmt: skip
        start += (size * word[row + WIDTH] + 63) & -64
        row += ROW
    return 0


def fold_row(group, side, row, at, lo, end, copy):
    """Combine some elements of one array of several, and hand them out."""
    slot = group + SLOTS
    last = slot + word[group + SIZE] * SLOT
    width = word[row + WIDTH]
    result = word[row + INTO]
    start = lo * width
    source = word[word[slot + SOURCE + side] + at] + start
    call(word[word[group + HALL] + COPY], result + start, source, (end - lo) * width)
    slot += SLOT
    while slot < last:
        source = word[word[slot + SOURCE + side] + at]
        call(word[row + COMBINE], result, source, lo, end)
        slot += SLOT
    slot = group + SLOTS
    while slot < last:
        to = word[word[slot + SOURCE + side] + at + INTO]
        if to != result:
            call(copy, to + start, result + start, (end - lo) * width)
        slot += SLOT
    return 0


def exchange_folds(entry, table, count, label):
    """All get the combinations of several arrays at one meeting; a row for each.

    Which replica begins with which part changes from array to array, so that many
    small ones are shared out as well.
    """
    group = word[entry]
    if group < 0:
        return call(word[entry + ELSEWHERE], entry, table, count, label)
    end = table + count * ROW
    total = 0
    row = table
    while row < end:
        total += (word[row + ELEMENTS] * word[row + WIDTH] + 63) & -64
        row += ROW
    if for_oneself(group, total):
        return fold_copies(entry, table, total, end, label)
    if word[word[group + HALL] + PHASE] == BRING:  # the table has to stay
        kept = group + SLOTS + word[entry + 8] * SLOT + BESIDE
        call(word[word[group + HALL] + COPY], kept, table, count * ROW)
        table = kept
    side = arrive(entry, table, total, 0, label)
    if side < 0:
        return side & 1
    number = word[entry + 8]
    copy = copier(group, total)
    row = table
    while row < end:
        size = word[row + ELEMENTS]
        grain = word[row + PIECE]
        part = quotient(quotient(size, grain), word[group + SIZE]) * grain
        lo = number * part
        last = lo + part
        if last > size:
            last = size
        while lo < last:
            hi = lo + grain
            if hi > last:
                hi = last
            fold_row(group, side, row, row - table, lo, hi, copy)
            lo = hi
        number += 1
        if number == word[group + SIZE]:
            number = 0
        row += ROW
    return leave(entry, total)


# Labels of exchanges: numbers that say what is exchanged, and for which line.

told: dict = {}  # from the numbers in labels to what they say
steps_told: dict = {}  # and to the steps that say it


def number_of(text, more=""):
    """Return a number for a text, and what else it depends on; in all processes."""
    number = zlib.crc32(f"{text}{more}".encode()) & 0x7FFFFFFF
    told[number] = text
    return number


def label_for(step):
    """Return the word that says what is exchanged, and for which line."""
    parts = getattr(step, "parts", (step,))
    how = [(x.how, x.x.dtype.name, x.x.size, x.out.size, x.sources) for x in parts]
    number = number_of(step.label, str(how))
    steps_told[number] = step
    return number | number_of(step.line) << 32
