# Made from chapters/11b_python.md by `make chapter`;
# edit the chapter, not this file.
"""The backend that runs programs as functions of Python."""

import numpy as np

from minijax.array import ArrayImpl, asbuffer
from minijax.compilation import backends
from minijax.emission import emit


def to_buffer(x):
    """Return the buffer of an argument, or a scalar if it has no axes."""
    buffer = x._buffer if type(x) is ArrayImpl else asbuffer(x)
    return buffer if buffer.shape else buffer[()]


class PythonProgram:
    """A program as a function of Python over NumPy.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the function is called.

    Attributes:
      text: its source.
      function: from buffers to a list of buffers.
    """

    def __init__(self, closed, name="program"):
        self.text, self.function, self.sources = emit(closed, name)
        self.out_avals = closed.out_avals

    def __call__(self, *args):
        """Return the list of results, from arrays and scalars."""
        try:
            outs = self.function(*map(to_buffer, args))
        except Exception as error:
            self.explain(error)
            raise
        return [
            ArrayImpl(np.asarray(out), aval) for out, aval in zip(outs, self.out_avals)
        ]

    def explain(self, error):
        """Add to an error from which line of the user it comes."""
        frame = error.__traceback__
        while frame is not None:
            lines = self.sources.get(frame.tb_frame.f_code.co_filename, {})
            if frame.tb_lineno in lines:
                error.add_note(f"In the line of {lines[frame.tb_lineno]}.")
            frame = frame.tb_next


backends["python"] = PythonProgram
