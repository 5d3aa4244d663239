# Made from chapters/11b_python.md by `make chapter`;
# edit the chapter, not this file.
"""Python source that is being written: names, lines, numbers."""

import builtins
import keyword
import re
from contextlib import contextmanager
from itertools import chain, count

import numpy as np

from minijax.jaxpr import Literal

RESERVED = frozenset([*keyword.kwlist, *dir(builtins), "np"])


class Names:
    """The names of one scope, each of which is given once."""

    def __init__(self):
        self.taken = set(RESERVED)

    def fresh(self, hint):
        """Return an identifier: `hint`, or one that begins with it if it is taken."""
        stem = re.sub(r"\W", "_", hint)
        stem = stem if stem.isidentifier() else f"_{stem}"
        tries = chain([stem], (f"{stem}{number}" for number in count(1)))
        name = next(name for name in tries if name not in self.taken)
        self.taken.add(name)
        return name


class Lines:
    """The body of a function, line by line.

    Attributes:
      source: the place in the user's program that the next lines come from, or None.
      sources: those places, by the number of the line from 0 on.
    """

    def __init__(self):
        self.lines, self.sources, self.indent, self.source = [], {}, "    ", None

    def line(self, text):
        """Write one line."""
        if self.source is not None:
            self.sources[len(self.lines)] = self.source
        self.lines.append(self.indent + text)

    @contextmanager
    def block(self, head):
        """Write `head`; what is written inside the ``with`` statement is its body."""
        self.line(head)
        outer, self.indent = self.indent, self.indent + "    "
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.indent = outer


def scalar_of(literal):
    """Return the value of a literal as a NumPy scalar of its dtype."""
    return np.asarray(literal.val).astype(literal.aval.dtype)[()]


def number_text(atom):
    """Return a literal as Python writes the number, or None if it needs its dtype.

    NumPy gives a number of Python the dtype of the operand beside it.
    """
    scalar = scalar_of(atom) if isinstance(atom, Literal) else None
    if scalar is None or scalar.dtype.kind not in "biuf" or not np.isfinite(scalar):
        return None
    text, kind = str(scalar), type(scalar.item())
    same = kind is bool or scalar.dtype.type(kind(text)) == scalar
    return text if same else None


def last_uses(jaxpr):
    """Return, for each equation, the variables with axes that nobody reads after it.

    They are results of equations of this jaxpr: its inputs belong to the caller.
    """
    later, dying = {*jaxpr.outvars, *jaxpr.invars, *jaxpr.constvars}, []
    for eqn in reversed(jaxpr.eqns):
        here = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
        here = dict.fromkeys([*eqn.outvars, *here])
        dying.append([var for var in here if var not in later and var.aval.shape])
        later.update(here)
    return dying[::-1]
