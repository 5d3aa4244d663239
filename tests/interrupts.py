"""Ctrl-C wherever Python looks for signals, one place after the other.

Python looks for signals as a function begins or a generator goes on (RESUME), as a loop
turns (JUMP_BACKWARD), and after a call of what is not a Python function; the exception
belongs to the instruction of the call. `places` counts these places in a piece of work,
and `interrupted` raises KeyboardInterrupt in the n-th. Between the last instruction of
a ``with`` block and the call of its ``__exit__``, and after an assignment, there is no
such place; an exception that a debugger raises there is not met in real programs.
"""

import dis
import functools
import os
import signal
import sys

import minijax

PACKAGE = os.path.dirname(minijax.__file__) + os.sep
CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW"}
SLOTS = {"__init__", "__new__", "__call__"}  # Python functions that C calls


@functools.cache
def handlers(code):
    """Return a function from an offset to the handler of an exception there."""
    table = dis._parse_exception_table(code)

    def of(offset):
        inside = [entry for entry in table if entry.start <= offset < entry.end]
        return inside[-1].target if inside else None

    return of


@functools.cache
def names(code):
    """Return the names of instructions by their offsets."""
    return {i.offset: i.opname for i in dis.get_instructions(code)}


class Places:
    """Counts the places where a signal is met, and raises in one of them.

    Args:
      wanted: the number of the place; -1 to count only.
      folders: whose code is looked into; the package by default.

    Attributes:
      files, functions: for each place that was met, in which file and function it is.
      where: the place, as text; None if it was not met.
      error: what was raised, with its frames: an interactive Python keeps them as well.
    """

    def __init__(self, wanted=-1, folders=(PACKAGE,)):
        self.folders, self.files, self.functions = folders, [], []
        self.wanted, self.count, self.last, self.where = wanted, 0, {}, None
        self.error = None

    def meet(self, frame, what):
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return  # the package keeps the signal for later
        self.count += 1
        self.files.append(frame.f_code.co_filename)
        self.functions.append(frame.f_code.co_name)
        if self.count - 1 == self.wanted:
            code = frame.f_code
            self.where = f"{what} {code.co_filename}:{frame.f_lineno} {code.co_name}"
            raise KeyboardInterrupt(self.where)

    def trace(self, frame, event, argument):
        caller, code = frame.f_back, frame.f_code
        ours = self.is_ours(frame)
        if caller is not None and code.co_name not in SLOTS:
            self.last.pop(caller, None)  # it is a Python function that was called
        if not ours and (caller is None or not self.is_ours(caller)):
            return None
        self.meet(frame, "begins")
        if not ours:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame, event, argument):
        if event == "return":
            self.last.pop(frame, None)
        if event == "opcode":
            code, here = frame.f_code, frame.f_lasti
            before, name = self.last.pop(frame, None), names(code).get(here, "")
            if name in CALLS:
                self.last[frame] = here
            if name.startswith("JUMP_BACKWARD"):
                self.meet(frame, "turns")
            elif before is not None and handlers(code)(before) == handlers(code)(here):
                self.meet(frame, "after a call")
        return self.step

    def profile(self, frame, event, function):
        if event == "c_return" and self.is_ours(frame):
            self.meet(frame, "in a call")

    def is_ours(self, frame):
        """Return whether a frame runs code that is looked into."""
        return frame.f_code.co_filename.startswith(self.folders)

    def run(self, work):
        """Run a function; return whether it was interrupted."""
        try:
            sys.settrace(self.trace)
            sys.setprofile(self.profile)
            work()
        except KeyboardInterrupt as error:
            self.error = error
            return True
        finally:
            sys.setprofile(None)
            sys.settrace(None)
            self.last.clear()
        return False


class Ways(Places):
    """Notes by which calls each place is reached, too.

    Attributes:
      ways: for each place that was met, what is compared with others.
    """

    def __init__(self, folders=(PACKAGE,)):
        super().__init__(folders=folders)
        self.ways = []

    def meet(self, frame, what):
        before, code = self.count, frame.f_code
        super().meet(frame, what)
        if self.count > before:
            way = [what, code]
            while frame is not None:
                way += [frame.f_code, frame.f_lasti] if self.is_ours(frame) else []
                frame = frame.f_back
            self.ways.append(tuple(way))


def places(work):
    """Return in how many places a signal may be met while a function runs."""
    counting = Places()
    counting.run(work)
    return counting.count


def interrupted(work, number):
    """Run a function, interrupted in one place; return where, or None, and the error.

    As long as the caller holds the error, its frames live, and all that they hold.
    """
    places = Places(number)
    places.run(work)
    return places.where, places.error
