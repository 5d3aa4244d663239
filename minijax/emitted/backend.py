"""The backend that runs programs as Python functions."""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.emitted.emission import emit
from minijax.emitted.evaluations import to_buffer
from minijax.emitted.scopes import explain
from minijax.jitting.compilation import backends, default_backend


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
        pairs, place = zip(outs, self.out_avals), self.placement
        return [ArrayImpl(np.asarray(out), aval, place) for out, aval in pairs]


backends["python"] = PythonProgram
default_backend.value = "python"
