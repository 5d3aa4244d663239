# Made from chapters/01_interception.md by `make chapter`;
# edit the chapter, not this file.
"""Errors that users meet, under the names that JAX gives them.

Reference: ``jax.errors``.
"""

class UnexpectedTracerError(TypeError):
    """A tracer was used after its transformation had ended, or outside of it."""


class ConcretizationTypeError(TypeError):
    """Python asked a tracer for the number that it stands for, and there is none."""


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a tracer for its truth: ``if tracer:``, ``tracer and ...``."""


class TracerIntegerConversionError(TypeError):
    """Python asked a tracer for an integer: ``range(tracer)``, ``items[tracer]``."""


class TracerArrayConversionError(TypeError):
    """NumPy asked a tracer for its buffer: ``numpy.sin(tracer)``."""


class NonConcreteBooleanIndexError(IndexError):
    """A tracer was used as a boolean mask, so that the result has no known shape."""


class JaxRuntimeError(RuntimeError):
    """Something failed while a program was running."""
