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
      address: of what machine code calls, with the number of a step and a table of the
        addresses of its slots; None if there are no steps.
    """

    functions: dict = {}

    def __init__(self, steps):
        self.steps, self.errors = [(step, self.prepare(step)) for step in steps], {}
        self.function, self.address = None, None
        if steps:
            self.function = HOST(answering(self.steps, self.errors))
            self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_runners[type(step)](self, step)

    def raise_error(self):
        """Raise the error that this thread has met."""
        raise self.errors.pop(threading.get_ident())


def answering(steps, errors):
    """Return a function that does a step, and returns 0, or 1 if there was an error.

    It holds no `Host`, so that a program is gone when nobody needs it.
    """

    def answer(number, addresses):
        try:
            step, run = steps[number]
            places = dict(zip(hosted_slots(step), addresses))
            memory = Memory({slot: taken(slot, places[slot]) for slot in step.reads})
            run(memory)
            for slot in step.writes:
                ctypes.memmove(places[slot], memory[slot].ctypes.data, nbytes(slot))
        except BaseException as error:
            errors[threading.get_ident()] = error
            return 1
        return 0

    return answer


def taken(slot, address):
    """Return a copy of the bytes of a slot."""
    return np.frombuffer(ctypes.string_at(address, nbytes(slot)), np.uint8)
