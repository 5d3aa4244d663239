# Made from chapters/08_errors.md by `make chapter`;
# edit the chapter, not this file.
"""Where in the user's program something was asked for.

Reference: ``jax._src.source_info_util``.
"""

import linecache
import os
import re
import sys
from functools import partial
from types import FrameType

import minijax
from minijax.errors import line_finders
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.staging import source_finder


class Position:
    """A place in a program; its line and its text are looked up when they are wanted.

    Args:
      code: the code object that was running.
      instruction: how far it had got, as a frame's ``f_lasti`` says.
    """

    __slots__ = ("code", "instruction")

    def __init__(self, code, instruction):
        self.code, self.instruction = code, instruction

    @property
    def position(self):
        """The line, counted from 1, and the column, counted from 0."""
        positions = list(self.code.co_positions())
        line, _, column, _ = positions[self.instruction // 2]
        return line or self.code.co_firstlineno, column or 0

    @property
    def text(self):
        """The text of the line; empty if there is no file."""
        return linecache.getline(self.code.co_filename, self.position[0]).strip()


# The names of cells in Jupyter, and in IPython's own terminal.
CELL = r".*ipykernel_\d+\W\d+\.py|<ipython-input-(\d+)-\w+>"


def _cell(found):
    """Return what a notebook calls the cell that is kept under a name of a file."""
    notebook = sys.modules.get("IPython")
    shell = notebook and notebook.get_ipython()
    compiler = getattr(shell, "compile", None)
    number = getattr(compiler, "_filename_map", {}).get(found[0], found[1])
    if number is None and hasattr(compiler, "get_code_name"):  # IPython 7 keeps no map
        for i, text in enumerate(shell.history_manager.input_hist_raw):
            if compiler.get_code_name(text, text, i) == found[0]:
                number = i
    return "cell" if number is None else f"cell In[{number}]"


class UserLine(Position):
    """A place in the user's program, as messages spell it."""

    __slots__ = ()

    @property
    def file(self):
        """The path of the file, or ``cell In[7]`` in a notebook."""
        return re.sub(CELL, _cell, self.code.co_filename)

    def spell(self, file):
        """Return ``file:line:column (function)``."""
        line, column = self.position
        return f"{file}:{line}:{column} ({self.code.co_qualname})"

    def __str__(self):
        return self.spell(os.path.basename(self.file))

    @property
    def brief(self):
        """The name of the file, and the text of the line."""
        return f"{self}: {self.text}"

    @property
    def place(self):
        """The name of the file and the number of the line."""
        return f"{os.path.basename(self.file)}:{self.position[0]}"

    @property
    def quoted(self):
        """The whole path, and the text of the line, for error messages."""
        return f"{self.spell(self.file)}: {self.text}"


HOME = os.path.dirname(minijax.__file__) + os.sep


class Readers(dict):
    """From names of files to the code of readers in them; to None for a user's file.

    A reader is a function that binds one equation after the other, and calls each
    `eqn`. Code is known by its identity; beside it stands whether the function keeps
    the program that it makes, for callers to come.
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


readers.add(eval_jaxpr)


def user_line(to_keep=False):
    """Return the `UserLine` that asked for what is going on, or None.

    Args:
      to_keep: whether to stop at a function that keeps programs: none of its callers
        is the one who asks.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        known = readers[code.co_filename]
        if known is None:  # a file of the user
            return UserLine(code, frame.f_lasti)
        if known and (keeps := known.get(id(code))) is not None:  # ours, and a reader
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
