"""Products of matrices by cuBLAS, NVIDIA's library, bound by ctypes.

Reference: https://docs.nvidia.com/cuda/cublas (``cublasGemmStridedBatchedEx``).
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import importlib
from contextlib import suppress
from ctypes import c_int, c_longlong, c_size_t, c_void_p
from typing import NamedTuple

from minijax.cuda.card_products import CardProduct
from minijax.cuda.driver import stand_in
from minijax.errors import JaxRuntimeError
from minijax.kernels.program_steps import StepKind, step_kinds
from minijax.matmul.lowering import cost_of_product, multiplied

SONAMES = "libcublas.so.13", "libcublas.so.12"
# From dtypes to CUDA's number of the type, cuBLAS's of the way to compute, and what
# holds a factor: CUDA_R_32F with CUBLAS_COMPUTE_32F, CUDA_R_64F with _64F.
TYPES = {"float32": (0, 68, ctypes.c_float), "float64": (1, 70, ctypes.c_double)}
DEFAULT_ALGORITHM = -1  # CUBLAS_GEMM_DEFAULT
MOST = 2**31 - 1  # of an int
ONE = [c_void_p, c_int, c_int]  # an operand: address, type, distance of columns
MANY = [*ONE, c_longlong]  # and distance of matrices
HEAD = [c_void_p, *[c_int] * 5, c_void_p]  # handle, operations, sizes, alpha
SIGNATURES = {
    "cublasCreate_v2": [c_void_p],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasGemmEx": [*HEAD, *ONE, *ONE, c_void_p, *ONE, c_int, c_int],
    "cublasGemmStridedBatchedEx": [
        *HEAD, *MANY, *MANY, c_void_p, *MANY, c_int, c_int, c_int,
    ],
}  # fmt: skip


def find_cublas():
    """Return cuBLAS, a library of ctypes, or None where there is none."""
    if stand_in.value is not None:
        return stand_in.value.cublas
    names = [*SONAMES]
    with suppress(ImportError, RuntimeError):  # it came with CuPy, in a wheel
        finder = importlib.import_module("cuda.pathfinder")
        names.insert(0, finder.load_nvidia_dynamic_lib("cublas").abs_path)
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name)
    return None


class Cublas:
    """cuBLAS for a card: its functions, a handle, a workspace.

    Args:
      card: a `Card`.
      library: what `find_cublas` returns.
    """

    def __init__(self, card, library):
        self.functions = {name: getattr(library, name) for name in SIGNATURES}
        for name, types in SIGNATURES.items():
            self.functions[name].argtypes = types
        self.handle = c_void_p()
        size = min(2**25, card.memory // 2**8)
        self._workspace = card.allocate(size)
        self.ask(card, "cublasCreate_v2", ctypes.byref(self.handle))
        self.ask(card, "cublasSetStream_v2", self.handle, card.stream)
        self.ask(card, "cublasSetWorkspace_v2", self.handle, self._workspace.ptr, size)

    def ask(self, card, name, *args, what="cuBLAS"):
        """Call a function.

        Raises:
          JaxRuntimeError: if it returns another status than 0.
        """
        status = card.call(self.functions[name], *args, what=what)
        if status:
            raise JaxRuntimeError(
                f"INTERNAL: {name} returned the status {status} on {card.name}: {what}"
            )


def cublas_of(card):
    """Return the `Cublas` of a card, which keeps it; None where there is none."""
    if "cublas" not in card.libraries:
        library = find_cublas()
        card.libraries["cublas"] = library and Cublas(card, library)
    return card.libraries["cublas"]


class Matrices(NamedTuple):
    """Matrices as BLAS sees them, column by column: the transposes of ours.

    Attributes:
      source: the buffer.
      start: where they begin, in bytes.
      turned: 1 if BLAS has to transpose them, else 0.
      lead: the distance from one column to the next.
      apart: the distance from one matrix to the next.
    """

    source: object
    start: int
    turned: int
    lead: int
    apart: int


def matrices_for_blas(view):
    """Return a view as `Matrices`, or None if its columns and rows have gaps."""
    *batch, down, across = view.strides
    *counts, rows, columns = view.shape
    apart = distance_of_matrices(counts, batch)
    ways = (across, down, columns, rows), (down, across, rows, columns)
    for turned, (step, lead, length, count) in enumerate(ways):
        lead = max(lead, length) if count == 1 else lead
        if (step == 1 or length == 1) and length <= lead <= MOST and apart is not None:
            start = view.offset * view.dtype.itemsize
            return Matrices(view.source, start, turned, lead, apart)
    return None


def distance_of_matrices(counts, strides):
    """Return the distance from each matrix to the next; None if there is no one."""
    axes = [(n, stride) for n, stride in zip(counts, strides) if n > 1]
    for (_, outer), (n, inner) in zip(axes, axes[1:]):
        if outer != n * inner:
            return None
    return axes[-1][1] if axes else 0


def gemm_of(step):
    """Return what cuBLAS is told of a product, or None if our kernel has to do it.

    That is three `Matrices`, of the left operand, the right one and the result.
    """
    found = [matrices_for_blas(x) for x in (step.lhs, step.rhs, step.out)]
    suits = step.out.dtype.name in TYPES and max(step.sizes) <= MOST
    return found if suits and None not in found and not found[2].turned else None


class LibraryProduct(CardProduct):
    """A step: a product of matrices by cuBLAS."""


def with_library(program, card):
    """Return a program whose products are done by cuBLAS, where it is and takes them.

    Args:
      program: a `LoweredProgram` for a card.
      card: a `Card`.
    """
    return program if cublas_of(card) is None else by_library(program)


def by_library(program):
    """Return a program whose products are done by cuBLAS, where it takes them."""
    steps = [step_by_library(step) for step in program.steps]
    return program._replace(steps=steps)


def step_by_library(step):
    """Return a step that cuBLAS does, if it can."""
    if type(step) is CardProduct and gemm_of(step):
        return LibraryProduct(*step)
    if step.programs:
        return step.with_programs([*map(by_library, step.programs)])
    return step


def multiplied_by_library(program, step):
    """Return a function of the memory that has cuBLAS do a product.

    Args:
      program: a `CudaProgram`.
      step: a `LibraryProduct`.
    """
    (count, m, n, k), (a, b, c) = step.sizes, gemm_of(step)
    kind, way, holder = TYPES[step.out.dtype.name]
    one, none = holder(1), holder(0)
    library, card = cublas_of(program.card), program.card
    head = (library.handle, b.turned, a.turned, n, m, k, ctypes.addressof(one))
    apart = [(x.apart,) if count > 1 else () for x in (b, a, c)]
    many = (count,) if count > 1 else ()
    name = "cublasGemmStridedBatchedEx" if count > 1 else "cublasGemmEx"
    what = f"{name} of {program.name}{program.line}"

    def do(memory):
        places = [memory[x.source].address + x.start for x in (b, a, c)]
        right, left, result = (
            (place, kind, x.lead, *distance)
            for place, x, distance in zip(places, (b, a, c), apart)
        )
        factors = *head, *right, *left, ctypes.addressof(none), *result
        library.ask(card, name, *factors, *many, way, DEFAULT_ALGORITHM, what=what)

    do.factors = one, none  # which live as long
    return do


# From types of steps to functions of a program and a step that return a function of
# the memory; it puts the work into the stream.
library_calls = {LibraryProduct: multiplied_by_library}
step_kinds[LibraryProduct] = StepKind(multiplied, cost_of_product)
