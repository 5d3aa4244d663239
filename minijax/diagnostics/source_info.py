"""Source information: places in programs, frames, and where values come from.

References: ``jax._src.source_info_util``, ``BaseException.add_note``, the hints of
``jax.errors.UnexpectedTracerError``.
"""

# Made from chapters/08_errors_ground.md by `make chapter`;
# edit the chapter, not this file.

import dis
import inspect
import linecache
import os
import re
import sys
from types import TracebackType

from minijax.core import Tracer
from minijax.jaxprs.jaxpr import JaxprTracer

# Places in programs, entries of tracebacks, and notes on errors, as Python has them.


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


def traceback_entries(traceback):
    """Return the entries of a traceback, outermost first."""
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    return steps


def make_traceback(steps):
    """Return a traceback of these entries alone."""
    traceback = None
    for step in reversed(steps):
        traceback = TracebackType(
            traceback, step.tb_frame, step.tb_lasti, step.tb_lineno
        )
    return traceback


def shows_notes():
    """Return whether the program that prints tracebacks shows the notes of an error."""
    notebook = sys.modules.get("IPython")
    if notebook is None or notebook.get_ipython() is None:
        return True
    return "__notes__" in inspect.getsource(notebook.core.ultratb)


def append_note(error, line):
    """Add a line to an error: as a note, or to its message where none are shown."""
    message, *others = error.args or (None,)
    if isinstance(message, str) and not shows_notes():
        error.args = (f"{message}\n{line}", *others)
    else:
        error.add_note(line)


# Where values come from: parameters, assignments, equations and arguments.


def slice_components(leaf):
    """Return what a leaf holds: the ends and the step of a slice, or itself."""
    cut = isinstance(leaf, slice)
    return (leaf.start, leaf.stop, leaf.step) if cut else (leaf,)


def frame_arguments(frame):
    """Return the values of the parameters of the function that a frame runs."""
    values = inspect.getargvalues(frame)
    names = [*values.args, values.varargs, values.keywords]
    return [values.locals[name] for name in names if name in values.locals]


def assigned(line, name):
    """Return the `UserLine` that gave a variable its value, before `line`, or None."""
    found = None
    for step in dis.get_instructions(line.code):
        if step.offset >= line.instruction:
            break
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname.startswith("STORE_") and name in names:
            found = UserLine(line.code, step.offset)
    return found


def innermost_jaxpr_tracer(value):
    """Return the `JaxprTracer` under the tracers of other traces, or None."""
    while isinstance(value, Tracer) and not isinstance(value, JaxprTracer):
        value = getattr(value, "primal", getattr(value, "value", None))
    return value if isinstance(value, JaxprTracer) else None


def defining_line(tracer):
    """Return the `UserLine` whose equation made a tracer, or None."""
    for eqn in tracer._trace.eqns:
        if tracer.variable in eqn.outvars:
            return eqn.source
    return None


def argument_name_of(tracer):
    """Return which argument of the function that is traced a tracer is, or None."""
    trace = tracer._trace
    names, function = trace.origin.argument_names, trace.origin.function
    if names is None or tracer.variable not in trace.invars:
        return None
    return f"the argument {names()[trace.invars.index(tracer.variable)]} of {function}"


def describe_origin(line, name, value):
    """Return where a value comes from, for a message; empty if that is not known."""
    tracer = innermost_jaxpr_tracer(value)
    if tracer is not None and (found := argument_name_of(tracer)):
        return found
    source = defining_line(tracer) if tracer is not None else None
    source = source or (name and assigned(line, re.split(r"\W", name)[0]))
    if source:
        return f"from {source.brief}"
    parameters = line.code.co_varnames[: line.code.co_argcount]
    known = name and re.split(r"\W", name)[0] in parameters
    return f"an argument of {line.code.co_name}" if known else ""
