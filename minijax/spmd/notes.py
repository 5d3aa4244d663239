"""What is noted while the program of one device is written: gatherings, and why."""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.extents import Derived, dynamic_variable, in_force


class Notes:
    """Notes on a program that is being written.

    Attributes:
      mesh: its `Mesh`.
      eqn: the equation that is being looked at.
      lines: one for each gathering.
      asked: for each result the sharding on another mesh that it is to have, or None.
    """

    def __init__(self, mesh):
        self.mesh, self.eqn, self.lines, self.asked = mesh, None, [], []


_notes = dynamic_variable("notes", None)


def notes_here():
    """Return the `Notes` of the program that this thread writes, or None."""
    return in_force(_notes).value


def noting(mesh):
    """Keep notes, for a ``with`` block; inside of another one, those of that one."""
    return Derived(_notes, lambda before: before or Notes(mesh))


def look_at(eqn):
    """Note which equation is being looked at."""
    if (notes := notes_here()) is not None:
        notes.eqn = eqn


def note_gathering(have, want):
    """Note that a value is cut in another way, if that takes a gathering.

    Args:
      have, want: for each axis the mesh axes that cut it.
    """
    kept = [new[: len(old)] == old for old, new in zip(have, want)]
    if (notes := notes_here()) is not None and not all(kept):
        what = notes.eqn.primitive if notes.eqn else "a result"
        where = f" ({notes.eqn.source})" if notes.eqn and notes.eqn.source else ""
        shown = [f"({', '.join(map('|'.join, spec))})" for spec in (have, want)]
        notes.lines.append(f"gathered for {what}{where}: {' -> '.join(shown)}")
