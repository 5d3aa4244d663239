"""Errors that users meet, under the names that JAX gives them.

Reference: ``jax.errors``.
"""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
import sys


class JAXTypeError(TypeError):
    """What a program did cannot be done with values of these types."""


class JAXIndexError(IndexError):
    """What a program asked for cannot be an index."""


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after its transformation had ended, or outside of it."""


class ConcretizationTypeError(JAXTypeError):
    """Python asked a tracer for the number that it stands for, and there is none."""


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a tracer for its truth: ``if tracer:``, ``tracer and ...``."""


class TracerIntegerConversionError(JAXTypeError):
    """Python asked a tracer for an integer: ``range(tracer)``, ``items[tracer]``."""


class StaticIntegerError(ConcretizationTypeError, TracerIntegerConversionError):
    """A tracer stands where an integer is part of the program: as an axis, as a size.

    JAX raises one of the two; which one depends on the function.
    """


class TracerArrayConversionError(JAXTypeError):
    """NumPy asked a tracer for its buffer: ``numpy.sin(tracer)``."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A tracer was used as a boolean mask, so that the result has no known shape."""


class InconclusiveDimensionOperation(Exception):
    """Two sizes of axes cannot be compared; sizes are numbers here, so all can."""


class JaxprTypeError(TypeError):
    """A jaxpr is not a program: the message shows where, and why."""


class KeyReuseError(JAXTypeError):
    """A random key was used twice, while ``jax_debug_key_reuse`` was on."""


class JaxRuntimeError(RuntimeError):
    """Something failed while a program was running."""


# Functions that find the line of the user's program that is running, or None.
user_line_finders: list = []

# Functions ``presenter(error)`` that make an error ready for its reader.
error_presenters: list = []


def format_for_user(error):
    """Make an error ready for its reader; what caught it then raises it again."""
    for presenter in error_presenters:
        presenter(error)


def presents_own_errors(function):
    """Mark a function as one that presents its errors itself; return it."""
    function.presents_errors = True
    return function


# Functions that give memory back which is kept for later; then the next call works.
memory_reclaimers: list = []


def out_of_memory_error(what, shape, dtype):
    """Return the error that says that there is no memory for an array.

    Args:
      what: what the array is for.
      shape, dtype: of the array; a shape of None is not known.
    """
    for give in memory_reclaimers:
        give()
    wanted = f"for {what}"
    if shape is not None:
        count = math.prod(map(int, shape)) * dtype.itemsize
        sizes = ",".join(map(str, shape))
        wanted = f"allocating {count} bytes for {what}, {dtype.name}[{sizes}]"
    places = [place for find in user_line_finders if (place := find())]
    lines = [f"\nIt was asked for in {place.quoted}" for place in places]
    message = f"RESOURCE_EXHAUSTED: Out of memory {wanted}.{''.join(lines)}"
    return JaxRuntimeError(message)


def raise_if_out_of_memory(what, error, avals=()):
    """Raise what `out_of_memory_error` returns if an error of Python or NumPy says so.

    It does if it is a MemoryError, or if one of `avals` has more bytes than there are
    addresses.
    """
    if isinstance(error, MemoryError):
        shape, dtype = (getattr(error, name, None) for name in ("shape", "dtype"))
        raise out_of_memory_error(what, shape, dtype) from error
    for aval in avals:
        if math.prod(aval.shape) * aval.dtype.itemsize > sys.maxsize:
            raise out_of_memory_error(what, aval.shape, aval.dtype) from error
