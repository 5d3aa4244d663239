"""Replicas in machine code: how they meet, exchange, reduce, and take turns.

A *group* is a table of words for those who meet: how many have arrived, which phase it
is, and a slot for each. A replica knows its groups by *entries*, two words: the address
of the group, and its own number in it. The language is that of `words`.

References: non-temporal stores, in the LLVM Language Reference,, ``MOVNTDQ``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import zlib

from minijax.cpu_backend.program_codegen import MEMCPY
from minijax.dispatch.word_language import alloca, call_pointer, i64
from minijax.threads.atomics import (
    PoolState,
    atomic_exchange,
    atomic_load,
    ceil_div,
    compare_exchange,
    fetch_add,
    spin_pause,
)
from minijax.threads.pool import park

# What replicas do in machine code: they meet, exchange, and wait for work.

# A group. Each of the first two has a line of its own, as all write there.
ARRIVED, PHASE_COUNTER, GROUP_SIZE, COMMUNICATOR = 0, 64, 128, 136
SLOTS, SLOT, MAX_INLINE_BYTES = 192, 1088, 512
# A slot; for two phases, as a quick replica may be one ahead of a slow one.
ARRIVALS, SOURCE, LABEL, RESULT, SLEEPS, BESIDE = 0, 8, 24, 40, 48, 64
KIND_MASK = 4294967295  # the bits of a label in which replicas have to agree
# An entry has the group, -1 if it belongs to several processes; the number in it; and,
# for these, where the function is that exchanges with the others.
EXCHANGE_FUNCTION = 16

# What all groups of a team share: its communicator.
ABORT_FLAG, SPINS, YIELDS, WORKER_SPINS = 0, 64, 72, 80
YIELD, ACQUIRE, ACQUIRE_TIMED, RELEASE = 96, 104, 112, 120
COPY, FILL, WATCHDOG_CALLBACK, KERNELS, PHASE, NONTEMPORAL, CACHED = range(128, 184, 8)
PUBLISH, CONSUME, NOT_YET = (
    1,
    2,
    -2,
)  # phases of a meeting in turn; what it answers first
PARK_MICROSECONDS = 20000  # after which one who waits asks Python
# Several arrays at one meeting: a row for each, with source, result and so on.
ROW_BYTES = 48
ROW_RESULT = 8
ROW_ELEMENTS = 16
ROW_WIDTH = 24
ROW_COMBINE = 32
ROW_GRAIN = 40
MISMATCH = 1  # why the watchdog is called: labels differ

# A team, and the line of each of its workers.
DONE_COUNT = 0
FINISHED = 8
COUNT = 16
STOP = 64
PROGRAM_POINTER = 128
TEAM_COMMUNICATOR = 136
WORKERS, WORKER_BYTES = 192, 128
GO = 0
ASLEEP = 8
PARKING_LOCK = 16
MEMORY_TABLE = 64
ARENA = 72
CONTEXT = 80
WORKER_STATUS = 88


def ask_watchdog(comm, entry, why):
    """Ask Python whether to go on waiting; return 1 to give up, and let all know.

    An interrupt before the first line of the function leaves the answer as it is.
    """
    answer = alloca(1)
    i64[answer] = 1
    call_pointer(i64[comm + WATCHDOG_CALLBACK], entry, why, answer)
    if i64[answer] != 0:
        atomic_exchange(comm + ABORT_FLAG, 1)
    return i64[answer]


def park_timed(comm, place, address, known, entry):
    """Sleep until woken, or for a while; return 1 to give up."""
    atomic_exchange(place, 1)
    if atomic_load(address) != known and compare_exchange(place, 1, 0) != 0:
        return 0
    if (
        call_pointer(i64[comm + ACQUIRE_TIMED], i64[place + 8], PARK_MICROSECONDS, 0)
        & KIND_MASK
    ):
        return 0
    if compare_exchange(place, 1, 0) != 0:
        return ask_watchdog(comm, entry, 0)
    return call_pointer(i64[comm + ACQUIRE], i64[place + 8], 1) & 0


def unpark(comm, place):
    """Wake the one who naps at a place, if it does."""
    if atomic_load(place) != 0 and compare_exchange(place, 1, 0) != 0:
        call_pointer(i64[comm + RELEASE], i64[place + 8])
    return 0


def wait(comm, place, address, known, entry, yields):
    """Wait until a word is not what it was; return 1 to give up.

    First go on looking, then let others have the core some times, then sleep.
    """
    spins = 0
    yields += i64[comm + SPINS]
    while atomic_load(address) == known:
        if entry != 0 and atomic_load(comm + ABORT_FLAG) != 0:
            return 1
        spins += 1
        if spins < i64[comm + SPINS]:
            spin_pause()
        elif spins < yields:
            call_pointer(i64[comm + YIELD])
        elif park_timed(comm, place, address, known, entry) != 0 and entry != 0:
            return 1
    return 0


def meet(entry, size):
    """Wait until all replicas of a group are there; return 1 if the run has failed.

    Where something small is exchanged, the others will not take long.
    """
    group = i64[entry]
    comm = i64[group + COMMUNICATOR]
    known = atomic_load(group + PHASE_COUNTER)
    slot = group + SLOTS
    if fetch_add(group + ARRIVED, 1) + 1 < i64[group + GROUP_SIZE]:
        slot += i64[entry + 8] * SLOT
        yields = 0
        if size <= MAX_INLINE_BYTES:
            yields = i64[comm + YIELDS]
        return wait(comm, slot + SLEEPS, group + PHASE_COUNTER, known, entry, yields)
    atomic_exchange(group + ARRIVED, 0)
    fetch_add(group + PHASE_COUNTER, 1)
    end = slot + i64[group + GROUP_SIZE] * SLOT
    while slot < end:
        unpark(comm, slot + SLEEPS)
        slot += SLOT
    return atomic_load(comm + ABORT_FLAG)


def arrive(entry, source, size, result, label):
    """Bring a source of so many bytes, and meet; return which side counts, or -1.

    A small one is copied, so that its memory can be used again at once. If replicas
    take turns, the first call only brings the source, and the second finds all there.
    """
    group = i64[entry]
    slot = group + SLOTS + i64[entry + 8] * SLOT
    phase = i64[i64[group + COMMUNICATOR] + PHASE]
    if phase == CONSUME:
        return 0
    if phase == PUBLISH:
        i64[slot + SOURCE] = source
        i64[slot + RESULT] = result
        return NOT_YET
    arrival = i64[slot + ARRIVALS] + 1
    side = 8 * (arrival & 1)
    if size <= MAX_INLINE_BYTES:
        copy = slot + BESIDE + (arrival & 1) * MAX_INLINE_BYTES
        call_pointer(i64[i64[group + COMMUNICATOR] + COPY], copy, source, size)
        source = copy
    i64[slot + SOURCE + side] = source
    i64[slot + LABEL + side] = label
    i64[slot + RESULT] = result
    atomic_exchange(slot + ARRIVALS, arrival)
    if meet(entry, size) != 0:
        return -1
    other = group + SLOTS
    end = other + i64[group + GROUP_SIZE] * SLOT
    while other < end:
        if (i64[other + LABEL + side] & KIND_MASK) != (label & KIND_MASK):
            ask_watchdog(i64[group + COMMUNICATOR], entry, MISMATCH)
            return -1
        other += SLOT
    return side


def depart(entry, size):
    """Wait until all have read a source of so many bytes; a small one was copied."""
    if size <= MAX_INLINE_BYTES or i64[i64[i64[entry] + COMMUNICATOR] + PHASE] != 0:
        return 0
    return meet(entry, size)


def combines_redundantly(group, size):
    """Return whether each combines all sources of so many bytes, as they are copied."""
    return (size <= MAX_INLINE_BYTES) & (i64[i64[group + COMMUNICATOR] + PHASE] == 0)


def combine_sources(group, side, result, start, lo, hi, width, combine):
    """Combine elements of all sources, from `start` bytes on, into a result."""
    slot = group + SLOTS
    end = slot + i64[group + GROUP_SIZE] * SLOT
    source = i64[slot + SOURCE + side] + start
    size = (hi - lo) * width
    at = lo * width
    call_pointer(i64[i64[group + COMMUNICATOR] + COPY], result + at, source + at, size)
    slot += SLOT
    while slot < end:
        call_pointer(combine, result, i64[slot + SOURCE + side] + start, lo, hi)
        slot += SLOT
    return 0


def choose_copy(group, size):
    """Return what copies to results of so many bytes each, as to what caches hold."""
    comm = i64[group + COMMUNICATOR]
    if 2 * size * i64[group + GROUP_SIZE] > i64[comm + CACHED]:
        return i64[comm + NONTEMPORAL]
    return i64[comm + COPY]


def hand_out(group, mine, from_, size, copy):
    """Copy some bytes of one's result to the results of all others."""
    slot = group + SLOTS
    end = slot + i64[group + GROUP_SIZE] * SLOT
    while slot < end:
        if i64[slot + RESULT] != mine:
            call_pointer(copy, i64[slot + RESULT] + from_, mine + from_, size)
        slot += SLOT
    return 0


def native_all_reduce(entry, source, result, size, width, combine, grain, label):
    """All get the combination of all sources, of `size` elements.

    Small ones each replica combines itself. Of large ones each combines a part, and
    writes it to the results of all others while it is still close.
    """
    group = i64[entry]
    if group < 0:
        return call_pointer(
            i64[entry + EXCHANGE_FUNCTION], entry, source, result, label
        )
    side = arrive(entry, source, size * width, result, label)
    if side < 0:
        return side & 1
    if combines_redundantly(group, size * width):
        return combine_sources(group, side, result, 0, 0, size, width, combine)
    part = ceil_div(ceil_div(size, grain), i64[group + GROUP_SIZE]) * grain
    lo = i64[entry + 8] * part
    end = lo + part
    if end > size:
        end = size
    copy = choose_copy(group, size * width)
    while lo < end:
        hi = lo + grain
        if hi > end:
            hi = end
        combine_sources(group, side, result, 0, lo, hi, width, combine)
        hand_out(group, result, lo * width, (hi - lo) * width, copy)
        lo = hi
    return depart(entry, size * width)


def native_reduce_scatter(entry, source, result, size, width, combine, grain, label):
    """Each gets a part, of `size` elements, of the combination of all sources."""
    group = i64[entry]
    if group < 0:
        return call_pointer(
            i64[entry + EXCHANGE_FUNCTION], entry, source, result, label
        )
    whole = i64[group + GROUP_SIZE] * size * width
    side = arrive(entry, source, whole, result, label)
    if side < 0:
        return side & 1
    lo = 0
    while lo < size:
        hi = lo + grain
        if hi > size:
            hi = size
        start = i64[entry + 8] * size * width
        combine_sources(group, side, result, start, lo, hi, width, combine)
        lo = hi
    return depart(entry, whole)


def native_all_gather(entry, source, result, size, label):
    """All get all sources, one after the other, of `size` bytes each."""
    group = i64[entry]
    if group < 0:
        return call_pointer(
            i64[entry + EXCHANGE_FUNCTION], entry, source, result, label
        )
    side = arrive(entry, source, size, result, label)
    if side < 0:
        return side & 1
    slot = group + SLOTS
    end = slot + i64[group + GROUP_SIZE] * SLOT
    while slot < end:
        call_pointer(
            i64[i64[group + COMMUNICATOR] + COPY],
            result,
            i64[slot + SOURCE + side],
            size,
        )
        result += size
        slot += SLOT
    return depart(entry, size)


def native_all_to_all(entry, source, result, size, label):
    """Each gets its part of all sources, one after the other, of `size` bytes each."""
    group = i64[entry]
    if group < 0:
        return call_pointer(
            i64[entry + EXCHANGE_FUNCTION], entry, source, result, label
        )
    whole = i64[group + GROUP_SIZE] * size
    side = arrive(entry, source, whole, result, label)
    if side < 0:
        return side & 1
    slot = group + SLOTS
    end = slot + i64[group + GROUP_SIZE] * SLOT
    while slot < end:
        part = i64[slot + SOURCE + side] + i64[entry + 8] * size
        call_pointer(i64[i64[group + COMMUNICATOR] + COPY], result, part, size)
        result += size
        slot += SLOT
    return depart(entry, whole)


def native_collective_permute(entry, source, result, size, table, label):
    """Each gets the source of the replica that a table names, or zeros for -1."""
    group = i64[entry]
    if i64[entry] < 0:
        return call_pointer(
            i64[entry + EXCHANGE_FUNCTION], entry, source, result, label
        )
    side = arrive(entry, source, size, result, label)
    if side < 0:
        return side & 1
    number = -1
    if i64[entry + 8] < i64[table]:
        number = i64[table + 8 + 8 * i64[entry + 8]]
    if number >= 0:
        found = i64[group + SLOTS + number * SLOT + SOURCE + side]
        call_pointer(i64[i64[group + COMMUNICATOR] + COPY], result, found, size)
    else:
        call_pointer(i64[i64[group + COMMUNICATOR] + FILL], result, 0, size)
    return depart(entry, size)


def run_once(team, me):
    """Run the program of a team once, as one of its replicas."""
    program = i64[team + PROGRAM_POINTER]
    status = call_pointer(
        program, i64[me + MEMORY_TABLE], i64[me + ARENA], i64[me + CONTEXT]
    )
    i64[me + WORKER_STATUS] = status & KIND_MASK
    return 0


def team_worker_loop(team, me):
    """Be a replica whenever one is needed, until the team stops."""
    comm = i64[team + TEAM_COMMUNICATOR]
    known = 0
    while atomic_load(team + STOP) == 0:
        spins = 0
        now = atomic_load(me + GO)
        while now == known and spins < i64[comm + WORKER_SPINS]:
            if spins < i64[comm + SPINS]:
                spin_pause()
            else:
                call_pointer(i64[comm + YIELD])
            spins += 1
            now = atomic_load(me + GO)
        if now == known:
            park(me + ASLEEP, me + GO, known, i64[comm + ACQUIRE])
            now = atomic_load(me + GO)
        if now != known and atomic_load(team + STOP) == 0:
            run_once(team, me)
            if fetch_add(team + DONE_COUNT, 1) + 1 == i64[team + COUNT]:
                fetch_add(team + FINISHED, 1)
                unpark(comm, team + WORKERS + ASLEEP)
        known = now
    return 0


def notify_workers(team, count):
    """Tell so many workers, the first ones, that there is something to do."""
    comm = i64[team + TEAM_COMMUNICATOR]
    me = team + WORKERS
    end = me + count * WORKER_BYTES
    while me < end:
        me += WORKER_BYTES
        fetch_add(me + GO, 1)
        unpark(comm, me + ASLEEP)
    return 0


def launch_team(team, count):
    """Run the program by so many workers and by oneself; return whether it failed.

    The threads that share out kernels rest meanwhile.
    """
    comm = i64[team + TEAM_COMMUNICATOR]
    resting = 0
    if count > 0:
        resting = compare_exchange(i64[comm + KERNELS] + PoolState.busy, 0, 1)
    i64[team + COUNT] = count
    atomic_exchange(team + DONE_COUNT, 0)
    known = atomic_load(team + FINISHED)
    notify_workers(team, count)
    me = team + WORKERS
    run_once(team, me)
    if count > 0:
        wait(comm, me + ASLEEP, team + FINISHED, known, 0, i64[comm + YIELDS])
    if resting != 0:
        atomic_exchange(i64[comm + KERNELS] + PoolState.busy, 0)
    failed = 0
    end = me + count * WORKER_BYTES
    while me <= end:
        failed = failed + i64[me + WORKER_STATUS]
        me += WORKER_BYTES
    return failed


# Replicas that take turns, in the language of `words`.

# Parts of the program, contexts, and how far it is from one replica to the next.
(
    COMMUNICATOR_OFFSET, FIRST_OFFSET, PARTS_OFFSET, PARTS_END, CONTEXTS, CONTEXTS_END,
    SIZE_OF_CONTEXT, SIZE_OF_ROW, SIZE_OF_SPACE, TURNS,
) = range(0, 80, 8)  # fmt: skip


def run_serially(memory, arena, executor):
    """Run a program for all replicas: each part by one of them after the other."""
    part = i64[executor + PARTS_OFFSET]
    phase = i64[executor + FIRST_OFFSET]
    while part < i64[executor + PARTS_END]:
        i64[i64[executor + COMMUNICATOR_OFFSET] + PHASE] = phase
        phase = PUBLISH + CONSUME - phase
        row = memory
        space = arena
        context = i64[executor + CONTEXTS]
        while context < i64[executor + CONTEXTS_END]:
            call_pointer(i64[part], row, space, context)
            row += i64[executor + SIZE_OF_ROW]
            space += i64[executor + SIZE_OF_SPACE]
            context += i64[executor + SIZE_OF_CONTEXT]
        part += 8
    return 0


# Copies that go past the caches, in the language of LLVM.

NONTEMPORAL_COPY = f"""
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
    group = i64[entry]
    packed = alloca(64)
    at = packed
    row = table
    while row < end:
        size = i64[row + ROW_ELEMENTS] * i64[row + ROW_WIDTH]
        call_pointer(i64[i64[group + COMMUNICATOR] + COPY], at, i64[row], size)
        at += (size + 63) & -64
        row += ROW_BYTES
    side = arrive(entry, packed, total, 0, label)
    if side < 0:
        return side & 1
    start = 0
    row = table
    while row < end:
        size = i64[row + ROW_ELEMENTS]
        combine_sources(group, side, i64[row + ROW_RESULT], start, 0, size,
             i64[row + ROW_WIDTH], i64[row + ROW_COMBINE])  # fmt: skip
        start += (size * i64[row + ROW_WIDTH] + 63) & -64
        row += ROW_BYTES
    return 0


def fold_row(group, side, row, at, lo, end, copy):
    """Combine some elements of one array of several, and hand them out."""
    slot = group + SLOTS
    last = slot + i64[group + GROUP_SIZE] * SLOT
    width = i64[row + ROW_WIDTH]
    result = i64[row + ROW_RESULT]
    start = lo * width
    source = i64[i64[slot + SOURCE + side] + at] + start
    call_pointer(
        i64[i64[group + COMMUNICATOR] + COPY],
        result + start,
        source,
        (end - lo) * width,
    )
    slot += SLOT
    while slot < last:
        source = i64[i64[slot + SOURCE + side] + at]
        call_pointer(i64[row + ROW_COMBINE], result, source, lo, end)
        slot += SLOT
    slot = group + SLOTS
    while slot < last:
        to = i64[i64[slot + SOURCE + side] + at + ROW_RESULT]
        if to != result:
            call_pointer(copy, to + start, result + start, (end - lo) * width)
        slot += SLOT
    return 0


def bucketed_all_reduce(entry, table, count, label):
    """All get the combinations of several arrays at one meeting; a row for each.

    Which replica begins with which part changes from array to array, so that many
    small ones are shared out as well.
    """
    group = i64[entry]
    if group < 0:
        return call_pointer(i64[entry + EXCHANGE_FUNCTION], entry, table, count, label)
    end = table + count * ROW_BYTES
    total = 0
    row = table
    while row < end:
        total += (i64[row + ROW_ELEMENTS] * i64[row + ROW_WIDTH] + 63) & -64
        row += ROW_BYTES
    if combines_redundantly(group, total):
        return fold_copies(entry, table, total, end, label)
    if i64[i64[group + COMMUNICATOR] + PHASE] == PUBLISH:  # the table has to stay
        kept = group + SLOTS + i64[entry + 8] * SLOT + BESIDE
        call_pointer(
            i64[i64[group + COMMUNICATOR] + COPY], kept, table, count * ROW_BYTES
        )
        table = kept
    side = arrive(entry, table, total, 0, label)
    if side < 0:
        return side & 1
    number = i64[entry + 8]
    copy = choose_copy(group, total)
    row = table
    while row < end:
        size = i64[row + ROW_ELEMENTS]
        grain = i64[row + ROW_GRAIN]
        part = ceil_div(ceil_div(size, grain), i64[group + GROUP_SIZE]) * grain
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
        if number == i64[group + GROUP_SIZE]:
            number = 0
        row += ROW_BYTES
    return depart(entry, total)


# Labels of exchanges: numbers that say what is exchanged, and for which line.

label_texts: dict = {}  # from the numbers in labels to what they say
labelled_steps: dict = {}  # and to the steps that say it


def intern_text(text, more=""):
    """Return a number for a text, and what else it depends on; in all processes."""
    number = zlib.crc32(f"{text}{more}".encode()) & 0x7FFFFFFF
    label_texts[number] = text
    return number


def label_word(step):
    """Return the word that says what is exchanged, and for which line."""
    parts = getattr(step, "parts", (step,))
    how = [(x.how, x.x.dtype.name, x.x.size, x.out.size, x.sources) for x in parts]
    number = intern_text(step.label, str(how))
    labelled_steps[number] = step
    return number | intern_text(step.line) << 32
