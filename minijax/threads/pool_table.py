"""The table of the pool: where its words are, in bytes from its start.

What several threads write has lines of the cache of its own.
"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

from types import SimpleNamespace

LINE = 64  # of the cache, in bytes

# What all threads share, in front of the helpers, with a line for each of them.
Shared = SimpleNamespace(
    left=0, done=64, generation=128,
    task=192, args=200, size=208, step=216, count=224,
    busy=256,
    helpers=320, stop=328, spins=336, patience=344,
    acquire=352, release=360, acquire_timed=368, never=376,
    workers=384,
)  # fmt: skip
Helper = SimpleNamespace(asleep=0, bed=8, space=16)
