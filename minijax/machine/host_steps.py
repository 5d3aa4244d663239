"""Steps that Python does for a program that is machine code."""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import threading

import numpy as np

from minijax.jitting.costs import nbytes
from minijax.kernels.backends import Memory
from minijax.kernels.program_steps import step_kinds


def write_hosted(f, step):
    """Write a call of Python, which is given the addresses of the step's buffers."""
    number, addresses = len(f.program.hosted), [*map(f.address, hosted_buffers(step))]
    f.program.hosted.append(step)
    addresses.append(f.in_turn("status", 4))
    status = f.first("bitcast i8* %status to i32*", "l")
    f.line(f"store i32 1, i32* {status}")
    table = f.table(addresses)
    host = f.entry("%context", 0)
    function = f.first(f"bitcast i8* {host} to void (i64, i8**)*", "t")
    f.line(f"call void {function}(i64 {number}, i8** {table})")
    f.go_on_if_fine(f.emit(f"load i32, i32* {status}", "v"))


def hosted_buffers(step):
    """Return the buffers of a step that Python does, each once."""
    return list(dict.fromkeys([*step.reads, *step.writes]))


HOST = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))
STATUS = ctypes.sizeof(ctypes.c_int32)


class Host:
    """Does steps when machine code asks for it, and keeps the errors.

    Args:
      steps: the list of steps.

    Attributes:
      address: of what machine code calls, with the number of a step and a table of the
        addresses of its buffers and of its status; None if there are no steps.
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
        return step_kinds[type(step)].run(self, step)

    def raise_error(self):
        """Raise the error that this thread has met.

        One that came before the first line of a step, Python has shown, and not kept.
        """
        raise self.errors.pop(threading.get_ident(), KeyboardInterrupt())


def answering(steps, errors):
    """Return a function that does a step, and makes its status 0 if that went well.

    It holds no `Host`, so that a program is gone when no variable holds it.
    """

    def answer(number, addresses):
        step, run = steps[number]
        buffers = hosted_buffers(step)
        try:
            places = dict(zip(buffers, addresses))
            memory = Memory({x: taken(x, places[x]) for x in step.reads})
            run(memory)
            for x in step.writes:
                ctypes.memmove(places[x], memory[x].ctypes.data, nbytes(x))
            ctypes.memset(addresses[len(buffers)], 0, STATUS)
        except BaseException as error:
            errors[threading.get_ident()] = error
            ctypes.memset(addresses[len(buffers)], 1, STATUS)

    return answer


def taken(buffer, address):
    """Return a copy of the bytes of a buffer, also of more than an int of C counts."""
    count = nbytes(buffer)
    if not count:
        return np.zeros(0, np.uint8)
    return np.array((ctypes.c_uint8 * count).from_address(address))
