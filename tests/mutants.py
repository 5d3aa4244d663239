"""Mutants: faults that once were in the package, brought back for a while.

    with mutants.wide_row_end():
        ...  # what is compiled here has the fault again; a battery must find it

A mutant has the effect of its fault on every machine. What was compiled before is
forgotten at its start, and what has the fault at its end. Code that is found on the
disk cannot have it: its key is the text that LLVM is given.
"""

from contextlib import contextmanager
from unittest.mock import patch

from minijax import clear_caches
from minijax.fusion import greedy as common_loops
from minijax.kernels import builder as kernel_building
from minijax.llvm import vectors as vector_folds
from minijax.llvm import vectors as vector_memory
from minijax.vectorization import schedules as vector_kernels
from minijax.windows import convolution_tiles as tap_lowering

_TWICE = {"i8": "i16", "i16": "i32", "i32": "i64"}


@contextmanager
def fresh_caches():
    """Nothing is remembered from before the block, nor after it."""
    clear_caches()
    try:
        yield
    finally:
        clear_caches()


@contextmanager
def _instead(owner, name, new):
    """Another function in the place of one, while nothing else is remembered."""
    with fresh_caches(), patch.object(owner, name, new):
        yield


def wide_row_end():
    """A row's last number, if it is alone and was narrowed, is stored twice as wide.

    Sizes of 1 more than a multiple of a vector's lanes. What follows becomes zeros:
    the next row, or what lies behind the array.
    """
    return _instead(vector_memory, "emit_first", _write_wide)


def _write_wide(f, kind, address, x):
    element = f.emit(f"extractelement <{f.lanes} x {kind}> {x}, i32 0", "e")
    if _was_narrowed(f, x):
        wide = _TWICE[kind]
        element = f.emit(f"zext {kind} {element} to {wide}")
        kind, address = wide, f.emit(f"bitcast {kind}* {address} to {wide}*", "p")
    return f.line(f"store {kind} {element}, {kind}* {address}, align 1")


def _was_narrowed(f, x):
    """Whether a vector comes from wider numbers, the last time it was changed."""
    made = [line for scope in f.scopes for line in scope.lines if f" {x} = " in line]
    narrowing = "trunc ", "@to_", "x half> "  # from there halves are bits of integers
    return any(word in line for line in made for word in narrowing)


def limits_too_far():
    """A computed number that is 1 too large is let through."""

    def let_through(f, numbers, terms, *more):
        further = [term._replace(limit=term.limit + 1) for term in terms]
        return within(f, numbers, further, *more)

    within = vector_memory.emit_limits_hold
    return _instead(vector_memory, "emit_limits_hold", let_through)


def running_folds_begin_anew():
    """A fold that runs begins anew with each block of a loop."""
    return _instead(vector_folds, "is_scan", lambda fold: False)


def windows_read_once():
    """Fusion takes windows that overlap for readings of each number once."""
    return _instead(common_loops, "_apart", lambda place, sizes: True)


def one_pixel_beside_itself():
    """A convolution reads the one pixel of an axis again where zeros are beside it."""

    def without_neighbours(lowering, x, phases, dtype):
        image = padded_image(lowering, x, phases, dtype)
        strides = [s * (n > 1) for s, n in zip(image.strides, image.shape)]
        return image._replace(strides=(*strides,))

    padded_image = tap_lowering.padded_image
    return _instead(tap_lowering, "padded_image", without_neighbours)


def same_output_names():
    """All buffers that a kernel writes to are called ``out``.

    Rules of primitives with two results: one of them is lost, or the text is no code.
    """

    def name(buffers, written):
        return "out" if written else new_name(buffers, written)

    new_name = kernel_building.fresh_parameter_name
    return _instead(kernel_building, "fresh_parameter_name", name)


def import_order():
    """Nests are changed as if `vectors.streaming` alone had been imported first.

    The same numbers come of it, from other texts: streams come before held rows.
    """
    tiles, vectors, rows, ends, strips, streams, *more = vector_kernels.SCHEDULE_PASSES
    changed = tiles, vectors, streams, rows, ends, strips, *more
    return _instead(vector_kernels, "SCHEDULE_PASSES", changed)
