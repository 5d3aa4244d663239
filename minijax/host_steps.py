# Made from chapters/19c_programs.md by `make chapter`;
# edit the chapter, not this file.
"""Steps that Python does for a program that is machine code."""

import ctypes
import threading

import numpy as np

from minijax.costs import nbytes
from minijax.kernel_backends import Memory, step_runners
from minijax.program_text import hosted_slots

HOST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))


class Host:
    """Does steps when machine code asks for it, and keeps the errors.

    Args:
      steps: the list of steps.

    Attributes:
      function: what machine code calls, with the number of a step and a table of the
        addresses of its slots.
    """

    functions = {}

    def __init__(self, steps):
        self.steps = [(step, self.prepare(step)) for step in steps]
        self.errors, self.function = {}, HOST(self.call)

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_runners[type(step)](self, step)

    def call(self, number, addresses):
        """Do a step; return 0, or 1 if there was an error."""
        try:
            step, run = self.steps[number]
            places = dict(zip(hosted_slots(step), addresses))
            memory = Memory({slot: taken(slot, places[slot]) for slot in step.reads})
            run(memory)
            for slot in step.writes:
                ctypes.memmove(places[slot], memory[slot].ctypes.data, nbytes(slot))
        except BaseException as error:
            self.errors[threading.get_ident()] = error
            return 1
        return 0

    def raise_error(self):
        """Raise the error that this thread has met."""
        raise self.errors.pop(threading.get_ident())


def taken(slot, address):
    """Return a copy of the bytes of a slot."""
    return np.frombuffer(ctypes.string_at(address, nbytes(slot)), np.uint8)
