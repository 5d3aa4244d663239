"""Collectives among processes: five exchanges, by MPI.

Reference: the MPI standard, https://www.mpi-forum.org; ``mpi4py``.
"""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from minijax.batching.collectives import pmax_p, pmin_p, ppermute_p, psum_p
from minijax.batching.exchanges import all_gather_p, all_to_all_p, reduce_scatter_p


class Engine(NamedTuple):
    """What exchanges arrays among some processes.

    Attributes:
      comm: a communicator with the methods of mpi4py.
      operations: from ufuncs of NumPy to operations of MPI that do the same.
    """

    comm: Any
    operations: dict


def as_bytes(x):
    """Return the memory of a contiguous array as bytes: MPI need not know its dtype."""
    return x.reshape(-1).view(np.uint8)


def allgather(engine, x):
    """Return the arrays `x` of all ranks, with an axis in front that counts them."""
    y = np.empty((engine.comm.size, *x.shape), x.dtype)
    engine.comm.Allgather(as_bytes(x), as_bytes(y))
    return y


def alltoall(engine, x):
    """Send ``x[i]`` to rank `i`; return what all ranks have sent here, in order."""
    y = np.empty_like(x)
    engine.comm.Alltoall(as_bytes(x), as_bytes(y))
    return y


def allreduce(engine, x, fold):
    """Return the fold of the arrays `x` of all ranks, on all of them."""
    operation = native(engine, fold, x.dtype)
    if operation is None:
        return np.asarray(reduce(fold, allgather(engine, x)), x.dtype)
    y = np.empty_like(x)
    engine.comm.Allreduce(x, y, operation)
    return y


def native(engine, fold, dtype):
    """Return MPI's operation that folds arrays of a dtype as NumPy does, or None."""
    known = "bBhHiIlLqQ" + ("fdFD" if fold is np.add else "")
    return engine.operations.get(fold) if dtype.char in known else None


def reduce_scatter(engine, x):
    """Return the sum over all ranks of ``x[rank]``."""
    operation = native(engine, np.add, x.dtype)
    if operation is None:
        return np.asarray(reduce(np.add, alltoall(engine, x)), x.dtype)
    y = np.empty(x.shape[1:], x.dtype)
    engine.comm.Reduce_scatter_block(x, y, operation)
    return y


def permute(engine, x, perm):
    """Return the array of the rank that `perm` sends here; without one, zeros."""
    y, comm = np.zeros_like(x), engine.comm
    given = [comm.Irecv(as_bytes(y), i) for i, j in perm if j == comm.rank]
    given += [comm.Isend(as_bytes(x), j) for i, j in perm if i == comm.rank]
    for request in given:
        request.Wait()
    return y


def _parts(x, engine, axis, tiled):
    """Return the parts of an array along an axis, one for each rank, in one array."""
    parts = np.split(x, engine.comm.size, axis)
    return np.stack(parts if tiled else [part.squeeze(axis) for part in parts])


def _joined(parts, axis, tiled):
    return np.ascontiguousarray((np.concatenate if tiled else np.stack)(parts, axis))


def _gather(engine, x, axis_size, all_gather_dimension, tiled):
    return _joined(list(allgather(engine, x)), all_gather_dimension, tiled)


def _scatter(engine, x, axis_size, scatter_dimension, tiled):
    return reduce_scatter(engine, _parts(x, engine, scatter_dimension, tiled))


def _exchange(engine, x, axis_size, split_axis, concat_axis, tiled):
    sent = alltoall(engine, _parts(x, engine, split_axis, tiled))
    return _joined(list(sent), concat_axis, tiled)


# What each collective is among processes: a function of an engine, an array and the
# parameters, without the names of the axes.
ACROSS: dict[Any, Callable] = {
    psum_p: lambda engine, x: allreduce(engine, x, np.add),
    pmax_p: lambda engine, x: allreduce(engine, x, np.maximum),
    pmin_p: lambda engine, x: allreduce(engine, x, np.minimum),
    all_gather_p: _gather, reduce_scatter_p: _scatter, all_to_all_p: _exchange,
    ppermute_p: permute,
}  # fmt: skip
