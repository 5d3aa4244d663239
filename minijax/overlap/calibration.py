"""The line between neighbours in a ring: a fit of the alpha-beta model.

Reference: R. Hockney, "The communication challenge for MPP" (Parallel Computing, 1994).
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from time import perf_counter

import numpy as np

from minijax.ranks.engines import allreduce, permute
from minijax.ranks.ring_model import Line


def shift_seconds(engine, size, times=30):
    """Return how long it takes all ranks to send `size` bytes to the next one."""
    comm, x = engine.comm, np.zeros(size, np.uint8)
    ring = [(i, (i + 1) % comm.size) for i in range(comm.size)]
    found = []
    for _ in range(times):
        allreduce(engine, np.zeros(1, np.int64), np.add)  # begin together
        start = perf_counter()
        permute(engine, x, ring)
        found.append(perf_counter() - start)
    return min(found)  # other programs can only add to it


def calibrate(engine, sizes=(64, 4096, 65536, 1 << 20)):
    """Return the `Line` between neighbours, by a fit to messages of several sizes."""
    seconds = np.array([shift_seconds(engine, size) for size in sizes])
    rows = np.stack([np.ones(len(sizes)), np.array(sizes, float)], 1)
    found = np.linalg.lstsq(rows / seconds[:, None], np.ones(len(sizes)), rcond=None)[0]
    return Line(*map(float, np.maximum(found, 0)))
