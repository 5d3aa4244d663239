"""Pretty printing: text that knows where its lines may end.

A *document* says what is written and where a line may end; `layout` decides where it
does. A document is a string, a `Break`, a `Nest`, a `Group`, a `Note`, or a tuple of
documents.

Method: Philip Wadler, "A prettier printer" (2003), in the strict form of Christian
Lindig's "Strictly pretty" (2000).
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import defaultdict
from dataclasses import dataclass


@dataclass(slots=True, eq=False, repr=False)
class Break:
    """A place where a line may end; if it does not, `flat` stands there."""

    flat: str = " "


@dataclass(slots=True, eq=False, repr=False)
class Nest:
    """A document whose new lines are indented by `amount` more columns."""

    amount: int
    inside: object


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """A document that is written on one line if it fits there."""

    inside: object


@dataclass(slots=True, eq=False, repr=False)
class Note:
    """A remark on the line it stands in, written behind the line's end."""

    text: str


def join(separator, documents):
    """Return one document with `separator` between the given ones."""
    parts = []
    for document in documents:
        parts += [separator, document] if parts else [document]
    return tuple(parts)


def words_of(document):
    """Yield a document's words, in order, with no line ended."""
    todo = [document]
    while todo:
        match todo.pop():
            case str() as word:
                yield word
            case Break(flat):
                yield flat
            case Nest(_, inside) | Group(inside):
                todo.append(inside)
            case Note():
                pass
            case parts:
                todo.extend(reversed(parts))


def flatten(document):
    """Return a document's text with no line ended."""
    return "".join(words_of(document))


def fits(document, room):
    """Return whether a document with no line ended has at most `room` letters."""
    for word in words_of(document):
        room -= len(word)
        if room < 0:
            return False
    return True


def layout(document, width=80):
    """Return a document's text; a group that is wider than `width` ends its lines."""
    lines, notes = [""], defaultdict(list)
    todo = [(0, False, document)]
    while todo:
        indent, flat, document = todo.pop()
        match document:
            case str():
                lines[-1] += document
            case Note(text):
                notes[len(lines) - 1].append(text)
            case Break() if flat:
                lines[-1] += document.flat
            case Break():
                lines.append(" " * indent)
            case Nest(amount, inside):
                todo.append((indent + amount, flat, inside))
            case Group(inside):
                flat = flat or fits(inside, width - len(lines[-1]))
                todo.append((indent, flat, inside))
            case _:
                todo.extend((indent, flat, part) for part in reversed(document))
    return "\n".join(_with_notes(lines, notes))


def _with_notes(lines, notes):
    width = max(map(len, lines))
    for number, line in enumerate(lines):
        remarks = dict.fromkeys(notes[number])
        yield f"{line:{width}} # {', '.join(remarks)}" if remarks else line
