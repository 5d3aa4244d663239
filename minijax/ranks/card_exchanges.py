"""The five exchanges among cards, by NCCL through CuPy.

Reference: ``cupy.cuda.nccl``; NCCL's collective operations.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

import numpy as np

# NCCL's numbers of dtypes and reductions.
DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
SUM, MAX, MIN = 0, 2, 3
FOLDS = {np.add: SUM, np.maximum: MAX, np.minimum: MIN}
BYTES = DTYPES["uint8"]


class CardEngine(NamedTuple):
    """What exchanges arrays among cards.

    Attributes:
      comm: a communicator with the methods of ``cupy.cuda.nccl.NcclCommunicator``.
      group: a pair of functions around sends and receives that belong together.
      stream: the address of a stream.
    """

    comm: Any
    group: tuple
    stream: int = 0


def _address(x):
    return x.data.ptr if hasattr(x.data, "ptr") else x.ctypes.data


def card_allreduce(engine, x, y, fold):
    """Fold the arrays `x` of all cards into `y`."""
    kind = DTYPES[x.dtype.name]
    places = _address(x), _address(y), x.size
    engine.comm.allReduce(*places, kind, FOLDS[fold], engine.stream)


def card_allgather(engine, x, y):
    """Put the arrays `x` of all cards into `y`, one after the other."""
    engine.comm.allGather(_address(x), _address(y), x.nbytes, BYTES, engine.stream)


def card_reduce_scatter(engine, x, y):
    """Put the sum over all cards of ``x[rank]`` into `y`."""
    kind = DTYPES[x.dtype.name]
    engine.comm.reduceScatter(
        _address(x), _address(y), y.size, kind, SUM, engine.stream
    )


def card_alltoall(engine, x, y):
    """Send ``x[i]`` to card `i`; put what all have sent here into `y`."""
    size, part = engine.comm.size(), x.nbytes // engine.comm.size()
    engine.group[0]()
    for i in range(size):
        here, there = _address(x) + i * part, _address(y) + i * part
        engine.comm.send(here, part, BYTES, i, engine.stream)
        engine.comm.recv(there, part, BYTES, i, engine.stream)
    engine.group[1]()


def card_permute(engine, x, y, perm):
    """Put the array of the card that `perm` sends here into `y`, or leave zeros."""
    rank = engine.comm.rank_id()
    engine.group[0]()
    for source, target in perm:
        if source == rank:
            engine.comm.send(_address(x), x.nbytes, BYTES, target, engine.stream)
        if target == rank:
            engine.comm.recv(_address(y), y.nbytes, BYTES, source, engine.stream)
    engine.group[1]()
