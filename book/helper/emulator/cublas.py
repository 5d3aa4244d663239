"""What stands in for cuBLAS on an emulated card: it checks each call, and computes.

`EmulatedCublas(cupy)` has the functions of the library that minijax calls, with the
parameters that its documentation gives them, as functions of C. Each returns a status:
0, or 7 for a wrong value, as the library does; `wrong` tells what was wrong. Products
are put into the stream of the handle, and done when that is waited for.

Reference: https://docs.nvidia.com/cuda/host_steps.
"""

import ctypes
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from typing import NamedTuple

import numpy as np

INVALID = 7  # CUBLAS_STATUS_INVALID_VALUE
TYPES = {0: np.dtype("float32"), 1: np.dtype("float64")}
WAYS = {68: np.dtype("float32"), 70: np.dtype("float64")}


class Call(NamedTuple):
    """A product that was asked for: its name, operations, sizes, and how many."""

    name: str
    operations: str
    m: int
    n: int
    k: int
    count: int


class Operand(NamedTuple):
    """Matrices column by column."""

    address: int
    type: int
    lead: int
    apart: int
    rows: int
    columns: int


class EmulatedCublas:
    """The functions of cuBLAS that are called, on the memory of an emulated card.

    Args:
      cupy: an `EmulatedCuPy`.

    Attributes:
      calls: the products that were asked for, a list of `Call`.
      wrong: what was wrong with the last call that was refused.
    """

    def __init__(self, cupy):
        self.cupy, self.calls, self.wrong, self.handles = cupy, [], None, {}
        many = [c_void_p, c_int, c_int, c_longlong]
        head = [c_void_p, *[c_int] * 5, c_void_p]
        for name, types in {
            "cublasCreate_v2": [c_void_p],
            "cublasSetStream_v2": [c_void_p, c_void_p],
            "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
            "cublasGemmEx": [
                *head, *many[:3], *many[:3], c_void_p, *many[:3], c_int, c_int,
            ],
            "cublasGemmStridedBatchedEx": [
                *head, *many, *many, c_void_p, *many, c_int, c_int, c_int,
            ],
        }.items():  # fmt: skip
            made = ctypes.CFUNCTYPE(c_int, *types)
            setattr(self, name, made(self._guarded(getattr(self, f"_{name}"))))

    def _guarded(self, function):
        def guarded(*args):
            try:
                function(*args)
                return 0
            except Exception as error:
                self.wrong = error
                return INVALID

        return guarded

    def _cublasCreate_v2(self, place):
        number = len(self.handles) + 0x1000
        self.handles[number] = {"stream": None, "workspace": None}
        c_void_p.from_address(place).value = number

    def _cublasSetStream_v2(self, handle, stream):
        [found] = [x for x in self.cupy.streams if x.ptr == stream]
        self.handles[handle] = {"stream": found, "workspace": None}

    def _cublasSetWorkspace_v2(self, handle, address, size):
        assert address % 256 == 0, "a workspace begins at a multiple of 256"
        self.cupy.memory.at(address, size)
        self.handles[handle]["workspace"] = address

    def _cublasGemmEx(self, handle, ta, tb, m, n, k, alpha, *rest):
        a, b, (beta, *c), (way, algorithm) = rest[:3], rest[3:6], rest[6:10], rest[10:]
        given = (*a, 0), (*b, 0), (*c, 0)
        self._checked(way, algorithm, *given)
        self._product("gemm", handle, ta, tb, (m, n, k), alpha, beta, *given, 1)

    def _cublasGemmStridedBatchedEx(self, handle, ta, tb, m, n, k, alpha, *rest):
        a, b, (beta, *c), (count, *ways) = rest[:4], rest[4:8], rest[8:13], rest[13:]
        self._checked(*ways, a, b, c)
        sizes = m, n, k
        self._product("batched", handle, ta, tb, sizes, alpha, beta, a, b, c, count)

    def _checked(self, way, algorithm, *operands):
        assert algorithm == -1, f"algorithm {algorithm}"
        for _, kind, *_ in operands:
            assert TYPES[kind] == WAYS[way], f"type {kind} is not computed in way {way}"

    def _product(self, name, handle, ta, tb, sizes, alpha, beta, a, b, c, count):
        m, n, k = sizes
        state = self.handles[handle]
        stream, lone = state["stream"], count == 1
        assert {ta, tb} <= {0, 1} and min(m, n, k, count) > 0, (ta, tb, sizes)
        assert stream.recorded is None or state["workspace"], "memory while recording"
        left = Operand(*a, *((k, m) if ta else (m, k)))
        right = Operand(*b, *((n, k) if tb else (k, n)))
        result = Operand(*c, m, n)
        for each in (left, right, result):
            assert each.lead >= each.rows, f"{each}: columns overlap"
        assert lone or result.apart >= result.lead * (n - 1) + m, "results overlap"
        holder = {0: ctypes.c_float, 1: ctypes.c_double}[result.type]
        factors = [holder.from_address(place).value for place in (alpha, beta)]
        assert factors == [1, 0], f"factors {factors}"
        self.calls.append(Call(name, "NT"[ta] + "NT"[tb], *sizes, count))
        self.cupy.counts["products"] = self.cupy.counts.get("products", 0) + 1

        def make():
            x, y, z = (self._matrices(each, count) for each in (left, right, result))
            assert not np.may_share_memory(z, x) and not np.may_share_memory(z, y)
            x, y = x.swapaxes(1, 2) if ta else x, y.swapaxes(1, 2) if tb else y
            return lambda: np.copyto(z, x @ y)

        make() if stream.recorded is not None else None  # what is wrong is told now
        stream.add(make)

    def _matrices(self, operand, count):
        """Return a view of memory of the card, all of which is in one block."""
        kind, lead = TYPES[operand.type], operand.lead
        assert operand.address % kind.itemsize == 0, f"{operand} is not aligned"
        last = operand.apart * (count - 1) + lead * (operand.columns - 1) + operand.rows
        memory = self.cupy.memory.at(operand.address, last * kind.itemsize).view(kind)
        shape = count, operand.rows, operand.columns
        strides = [x * kind.itemsize for x in (operand.apart, 1, lead)]
        return np.lib.stride_tricks.as_strided(memory, shape, strides)
