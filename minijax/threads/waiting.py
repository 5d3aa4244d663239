"""Spinning: to look at a word that another thread will change."""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.calls.words import call, word
from minijax.threads.atomics import pause, seen
from minijax.threads.pool_table import Shared


def watch(address, known, patience):
    """Look some times until a word is not the known one any more; return it."""
    turns = 0
    now = seen(address)
    while now == known and turns < patience:
        pause()
        turns += 1
        now = seen(address)
    return now


def finish(pool):
    """Wait until all parts are done."""
    turns = 0
    while seen(pool + Shared.done) < word[pool + Shared.count]:
        if turns < word[pool + Shared.patience]:
            pause()
            turns += 1
        else:
            call(word[pool + Shared.acquire_timed], word[pool + Shared.never], 50, 0)
    return 0
