# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.
"""The table of the pool: where its words are, in bytes from its start.

What several threads write has lines of the cache of its own.
"""

LEFT, DONE, GENERATION = 0, 64, 128
TASK, ARGS, SIZE, STEP, COUNT = 192, 200, 208, 216, 224
BUSY = 256
HELPERS, STOP, SPINS, PATIENCE = 320, 328, 336, 344
ACQUIRE, RELEASE, ACQUIRE_TIMED, NEVER = 352, 360, 368, 376
WORKERS, LINE = 384, 64
ASLEEP, BED, SPACE = 0, 8, 16
