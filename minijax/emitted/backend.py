# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""The backend that runs programs as Python functions."""

from itertools import repeat

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer
from minijax.emitted.emission import emit
from minijax.emitted.scopes import explain
from minijax.jitting.compilation import backends, default_backend


def to_buffer(x):
    """Return the buffer of an argument, or a scalar if it has no axes."""
    buffer = x._buffer if type(x) is ArrayImpl else asbuffer(x)
    return buffer if buffer.shape else buffer[()]


class PythonProgram:
    """A program as a Python function over NumPy.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the function is called.

    Attributes:
      text: the source of the function, and of those that it calls.
      function: from buffers to a list of buffers.
    """

    placement, platforms = None, ("cpu",)

    def __init__(self, closed, name="program"):
        self.text, self.function, self._sources = emit(closed, name)
        self.out_avals = closed.out_avals

    def __call__(self, *args):
        """Return the list of results, from arrays and scalars."""
        try:
            outs = self.function(*map(to_buffer, args))
        except Exception as error:
            explain(error, self._sources)
            raise
        buffers = map(np.asarray, outs)
        return list(map(ArrayImpl, buffers, self.out_avals, repeat(self.placement)))


backends["python"] = PythonProgram
default_backend.value = "python"
