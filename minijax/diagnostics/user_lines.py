"""Where in the user's program something was asked for.

Reference: ``jax._src.source_info_util``.
"""

# Made from chapters/08_errors.md by `make chapter`;
# edit the chapter, not this file.

import linecache
import os
import sys
from functools import partial
from types import FrameType

import minijax
from minijax.diagnostics.frames import UserLine
from minijax.errors import line_finders
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import source_finder

HOME = os.path.dirname(minijax.__file__) + os.sep


class Readers(dict):
    """From names of files to the code of readers in them; to None for a user's file.

    A reader is a function that binds one equation after the other, and calls each
    `eqn`. Each entry leads from the identity of its code to whether the function keeps
    the program that it makes for later callers.
    """

    def __missing__(self, file_name):
        ours = file_name.startswith((HOME, "<minijax"))
        ours = ours or linecache.getline(file_name, 1).startswith("#| export")
        return self.setdefault(file_name, {} if ours else None)

    def add(self, function, keeps=False):
        """Note a reader, or a function that keeps programs."""
        self[function.__code__.co_filename][id(function.__code__)] = keeps


readers: "Readers" = Readers()


def is_ours(file_name):
    """Return whether code is in the package, or made by it, or about to be in it."""
    return readers[file_name] is not None


def caller_of(frame):
    """Return the innermost frame of the user that a frame of ours runs under."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


readers.add(eval_jaxpr)


def user_line(to_keep=False):
    """Return the `UserLine` that asked for what is going on, or None.

    Args:
      to_keep: whether to stop at a function that keeps programs, since none of its
        callers is the only one that its program is for.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        known = readers[frame.f_code.co_filename]
        if known is None:  # a file of the user
            return UserLine(frame.f_code, frame.f_lasti)
        if known and (keeps := known.get(id(frame.f_code))) is not None:  # a reader
            if keeps and to_keep:
                return None
            eqn = frame.f_locals.get("eqn")
            if eqn is not None and eqn.source is not None:
                return eqn.source
        frame = frame.f_back
    return None


# Returns the `UserLine` of an equation, or None if its program's calls have it.
line_to_keep = partial(user_line, to_keep=True)

source_finder.value = line_to_keep
line_finders.append(user_line)
