# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.
"""The table of the pool: where its words are, and how its threads sleep and wake.

What several threads write has lines of the cache of its own.
"""

from minijax.calls.words import call, word
from minijax.threads.atomics import added, pause, put, seen, swapped

LEFT, DONE, GENERATION = 0, 64, 128
TASK, ARGS, SIZE, STEP, COUNT = 192, 200, 208, 216, 224
BUSY = 256
HELPERS, STOP, SPINS, PATIENCE = 320, 328, 336, 344
ACQUIRE, RELEASE, ACQUIRE_TIMED, NEVER = 352, 360, 368, 376
WORKERS, LINE = 384, 64
ASLEEP, BED, SPACE = 0, 8, 16


def rest(pool, me, known):
    """Sleep until there is another task than the known one, or are woken."""
    put(me + ASLEEP, 1)
    if seen(pool + GENERATION) != known and swapped(me + ASLEEP, 1, 0) != 0:
        return 0
    return call(word[pool + ACQUIRE], word[me + BED], 1)


def watch(pool, known, patience):
    """Wait a short while for another task than the known one; return its number."""
    turns = 0
    now = seen(pool + GENERATION)
    while now == known and turns < patience:
        pause()
        turns += 1
        now = seen(pool + GENERATION)
    return now


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


def finish(pool):
    """Wait until all parts are done."""
    turns = 0
    while seen(pool + DONE) < word[pool + COUNT]:
        if turns < word[pool + PATIENCE]:
            pause()
            turns += 1
        else:
            call(word[pool + ACQUIRE_TIMED], word[pool + NEVER], 50, 0)
    return 0
