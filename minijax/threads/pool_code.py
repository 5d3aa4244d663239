"""What the threads of the pool do, in the language of `words`."""

# Made from chapters/27_threads.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.words import call, word
from minijax.threads.atomics import added, put, quotient, seen, swapped
from minijax.threads.pool_table import LINE, Helper, Shared
from minijax.threads.waiting import finish, watch


def drain(pool, space):
    """Do parts of the task as long as there are some; return how many."""
    count = 0
    left = added(pool + Shared.left, -1)
    while left > 0:
        start = (word[pool + Shared.count] - left) * word[pool + Shared.step]
        end = start + word[pool + Shared.step]
        if end > word[pool + Shared.size]:
            end = word[pool + Shared.size]
        call(word[pool + Shared.task], word[pool + Shared.args], start, end, space)
        added(pool + Shared.done, 1)
        count += 1
        left = added(pool + Shared.left, -1)
    return count


def offer(pool, task, args, size, step):
    """Put a task there, in parts of some turns."""
    word[pool + Shared.task] = task
    word[pool + Shared.args] = args
    word[pool + Shared.size] = size
    word[pool + Shared.step] = step
    word[pool + Shared.count] = quotient(size, step)
    put(pool + Shared.done, 0)
    return put(pool + Shared.left, word[pool + Shared.count])


def rest(asleep, watched, known, acquire):
    """Sleep until a word is not the known one any more, or until woken."""
    put(asleep, 1)
    if seen(watched) != known and swapped(asleep, 1, 0) != 0:
        return 0
    return call(acquire, word[asleep + 8], 1)


def wake(pool, most):
    """Wake some of those who sleep."""
    added(pool + Shared.generation, 1)
    me = pool + Shared.workers
    end = me + word[pool + Shared.helpers] * LINE
    while me < end and most > 0:
        if seen(me + Helper.asleep) != 0 and swapped(me + Helper.asleep, 1, 0) != 0:
            call(word[pool + Shared.release], word[me + Helper.bed])
            most -= 1
        me += LINE
    return 0


def work(pool, me):
    """Help with tasks until the pool stops; who comes too late sleeps at once."""
    known = 0
    done = 0
    while seen(pool + Shared.stop) == 0:
        patience = 0
        if done > 0:
            patience = word[pool + Shared.spins]
        now = watch(pool + Shared.generation, known, patience)
        if now == known:
            acquire = word[pool + Shared.acquire]
            rest(me + Helper.asleep, pool + Shared.generation, known, acquire)
            now = seen(pool + Shared.generation)
        known = now
        done = drain(pool, word[me + Helper.space])
    return 0


def share(pool, task, args, size, unit, space, each, most):
    """Do a task with the help of the others, if they are free."""
    helpers = word[pool + Shared.helpers]
    if helpers == 0 or most < 2 or swapped(pool + Shared.busy, 0, 1) == 0:
        return call(task, args, 0, size, space)
    parts = each * (helpers + 1)
    if parts > most:
        parts = most
    offer(pool, task, args, size, quotient(quotient(size, unit), parts) * unit)
    wake(pool, word[pool + Shared.count] - 1)
    drain(pool, space)
    finish(pool)
    return put(pool + Shared.busy, 0)
