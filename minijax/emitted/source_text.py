"""Python source that is being written: names, comments, lines."""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import keyword
import unicodedata
from contextlib import contextmanager
from itertools import chain, count

from minijax.jaxprs.printing import Writing, shared_jaxprs, write_jaxpr

RESERVED = frozenset([*keyword.kwlist, *dir(builtins), "np", "_"])


def letters_of(jaxpr):
    """Return the names that variables have where a jaxpr is printed."""
    shared = shared_jaxprs(jaxpr)
    writing = Writing(jaxpr, shared)
    for each in [*shared, jaxpr]:
        write_jaxpr(each, writing)
    return writing.names


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
        self._source, self._remark = None, None

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

    def forget(self, names):
        """Write that some names are not needed any more."""
        names = [name for name in dict.fromkeys(names) if name != "_"]
        if names:
            self.line(f"del {', '.join(names)}")

    def assign(self, targets, values):
        """Give names to values, all at once."""
        pairs = [(t, v) for t, v in zip(targets, values) if t not in (v, "_")]
        if pairs:
            left, right = map(", ".join, zip(*pairs))
            self.line(f"{left} = {right}")

    def end(self, values):
        """Write the end of the function, at which everything is forgotten."""
        while self.lines and self.lines[-1].startswith("    del "):
            self.lines.pop()
        self.line(f"return [{', '.join(values)}]")
