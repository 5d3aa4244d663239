# Made from chapters/27_threads.md by `make chapter`;
# edit the chapter, not this file.
"""What the threads of the pool do, in the language of `words`."""

from minijax.calls.words import call, word
from minijax.threads.atomics import added, put, quotient, seen, swapped
from minijax.threads.pool_table import (
    ACQUIRE,
    ARGS,
    ASLEEP,
    BED,
    BUSY,
    COUNT,
    DONE,
    GENERATION,
    HELPERS,
    LEFT,
    LINE,
    RELEASE,
    SIZE,
    SPACE,
    SPINS,
    STEP,
    STOP,
    TASK,
    WORKERS,
)
from minijax.threads.waiting import finish, watch


def drain(pool, space):
    """Do parts of the task as long as there are some; return how many."""
    count = 0
    left = added(pool + LEFT, -1)
    while left > 0:
        start = (word[pool + COUNT] - left) * word[pool + STEP]
        end = start + word[pool + STEP]
        if end > word[pool + SIZE]:
            end = word[pool + SIZE]
        call(word[pool + TASK], word[pool + ARGS], start, end, space)
        added(pool + DONE, 1)
        count += 1
        left = added(pool + LEFT, -1)
    return count


def offer(pool, task, args, size, step):
    """Put a task there, in parts of some turns."""
    word[pool + TASK] = task
    word[pool + ARGS] = args
    word[pool + SIZE] = size
    word[pool + STEP] = step
    word[pool + COUNT] = quotient(size, step)
    put(pool + DONE, 0)
    return put(pool + LEFT, word[pool + COUNT])


def rest(asleep, watched, known, acquire):
    """Sleep until a word is not the known one any more, or until woken."""
    put(asleep, 1)
    if seen(watched) != known and swapped(asleep, 1, 0) != 0:
        return 0
    return call(acquire, word[asleep + 8], 1)


def wake(pool, most):
    """Wake some of those who sleep."""
    added(pool + GENERATION, 1)
    me = pool + WORKERS
    end = me + word[pool + HELPERS] * LINE
    while me < end and most > 0:
        if seen(me + ASLEEP) != 0 and swapped(me + ASLEEP, 1, 0) != 0:
            call(word[pool + RELEASE], word[me + BED])
            most -= 1
        me += LINE
    return 0


def work(pool, me):
    """Help with tasks until the pool stops; who comes too late sleeps at once."""
    known = 0
    done = 0
    while seen(pool + STOP) == 0:
        patience = 0
        if done > 0:
            patience = word[pool + SPINS]
        now = watch(pool + GENERATION, known, patience)
        if now == known:
            rest(me + ASLEEP, pool + GENERATION, known, word[pool + ACQUIRE])
            now = seen(pool + GENERATION)
        known = now
        done = drain(pool, word[me + SPACE])
    return 0


def share(pool, task, args, size, unit, space, each, most):
    """Do a task with the help of the others, if they are free."""
    helpers = word[pool + HELPERS]
    if helpers == 0 or most < 2 or swapped(pool + BUSY, 0, 1) == 0:
        return call(task, args, 0, size, space)
    parts = each * (helpers + 1)
    if parts > most:
        parts = most
    offer(pool, task, args, size, quotient(quotient(size, unit), parts) * unit)
    wake(pool, word[pool + COUNT] - 1)
    drain(pool, space)
    finish(pool)
    return put(pool + BUSY, 0)
