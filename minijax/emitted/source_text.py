# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Python source that is being written: names, numbers, lines."""

import builtins
import keyword
import unicodedata
from contextlib import contextmanager
from itertools import chain, count

import numpy as np

from minijax.jaxprs.jaxpr import Literal


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


RESERVED = frozenset([*keyword.kwlist, *dir(builtins), "np", "_"])


def identifier(hint):
    """Return a text as an identifier, in the form in which Python reads it."""
    letters = unicodedata.normalize("NFKC", hint.strip("<>"))
    fits = [c.isalnum() and f"_{c}".isidentifier() for c in letters]
    word = "".join(c if fit else "_" for c, fit in zip(letters, fits))
    return word if word.isidentifier() else f"_{word}"


class Names:
    """The names of one scope, each of which is given once."""

    def __init__(self):
        self.taken = set(RESERVED)

    def fresh(self, hint):
        """Return `hint` as an identifier, or one that begins with it if it is taken."""
        stem = identifier(hint)
        tries = chain([stem, f"{stem}_"], (f"{stem}_{number}" for number in count(2)))
        name = next(name for name in tries if name not in self.taken)
        self.taken.add(name)
        return name


def comment(text):
    """Return a text as a comment, on one line, of what can be printed."""
    printable = "".join([c if c.isprintable() else " " for c in text])
    return f"# {' '.join(printable.split())}"


def remark(source):
    """Return a comment on a place in the user's program: its text, or where it is."""
    return comment(getattr(source, "text", "") or str(source))


class Lines:
    """The body of a function, line by line.

    Attributes:
      sources: the place in the user's program of each line that has one, by number.
    """

    def __init__(self):
        self.lines, self.sources, self.indent = [], {}, "    "
        self._source = self._remark = None

    def line(self, text):
        """Write one line."""
        if self._source is not None:
            self.sources[len(self.lines)] = self._source
        self.lines.append(self.indent + text)

    def on_behalf_of(self, source):
        """Note which place in the user's program the next lines come from, or None."""
        self._source, last = source, self._remark
        self._remark = last if source is None else remark(source)
        if self._remark != last:
            self.line(self._remark)

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
