"""Which axes of an array are cut along which axes of a mesh.

Reference: ``jax.sharding.PartitionSpec``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from functools import cache

import numpy as np


class _Unconstrained:
    """Stands for an axis of an array that may be cut in any way."""

    def __repr__(self):
        return "UNCONSTRAINED"

    def __reduce__(self):
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


def _entry(part):
    if not isinstance(part, list | tuple):
        return part
    nested = [name for name in part if isinstance(name, list | tuple)]
    if nested:
        raise ValueError(
            "A tuple inside PartitionSpec cannot contain a nested tuple: the entry "
            f"{part!r} contains {nested[0]!r}. Write the names one after another."
        )
    return part[0] if len(part) == 1 else tuple(part) or None


class PartitionSpec:
    """For each axis of an array, the mesh axes along which it is cut.

    Args:
      *partitions: for each axis None, the name of a mesh axis, a tuple of names (the
        first is the outermost), or ``PartitionSpec.UNCONSTRAINED``.
      unreduced, reduced: sets of names of axes along which values are parts of a sum,
        or cotangents will be.

    Reference: ``jax.sharding.PartitionSpec``, ``jax.P``.
    """

    __slots__ = ("_partitions", "reduced", "unreduced")
    UNCONSTRAINED = _UNCONSTRAINED

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        self._partitions = tuple(map(_entry, partitions))
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def __init_subclass__(cls, **kwargs):
        raise TypeError(f"PartitionSpec cannot be subclassed, by {cls.__name__}.")

    partitions = property(lambda self: self._partitions)
    _key = property(lambda self: (self._partitions, self.unreduced, self.reduced))

    def __repr__(self):
        parts = [repr(part) for part in self._partitions]
        parts += [
            f"{name}={{{', '.join(map(repr, sorted(getattr(self, name), key=str)))}}}"
            for name in ("unreduced", "reduced")
            if getattr(self, name)
        ]
        return f"P({', '.join(parts)}{',' if len(parts) == 1 == len(self) else ''})"

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __reduce__(self):
        return _spec_of, self._key

    def __len__(self):
        return len(self._partitions)

    def __iter__(self):
        return iter(self._partitions)

    def __getitem__(self, i):
        return self._partitions[i]

    def __add__(self, other):
        more = tuple(other) if isinstance(other, PartitionSpec | tuple) else None
        return NotImplemented if more is None else self._of((*self, *more))

    def __radd__(self, other):
        return self._of((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def _of(self, partitions):
        return _spec_of(partitions, self.unreduced, self.reduced)

    def index(self, value):
        """Return the first axis with this entry."""
        return self._partitions.index(_entry(value))

    def count(self, value):
        """Return how many axes have this entry."""
        return self._partitions.count(_entry(value))

    def update(self, partitions=None, unreduced=None, reduced=None):
        """Return the specification with some of its parts replaced."""
        given = partitions, unreduced, reduced
        pairs = zip(given, self._key)
        return _spec_of(*[old if new is None else new for new, old in pairs])


def _spec_of(partitions, unreduced, reduced):
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def names_of_entry(entry):
    """Return the tuple of mesh axes along which an axis is cut."""
    if entry is None or entry is _UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def dims_of(spec, ndim):
    """Return for each axis of an array the tuple of mesh axes that divide it."""
    entries = list(map(names_of_entry, spec))
    return entries + [()] * (ndim - len(entries))


def names_in(spec):
    """Return the list of mesh axes that a spec mentions."""
    return [name for names in dims_of(spec, 0) for name in names]


def trimmed(spec):
    """Return a specification without the entries at its end that say nothing."""
    kept = len(spec)
    while kept and not names_of_entry(spec[kept - 1]):
        kept -= 1
    whole = [None if x is _UNCONSTRAINED else x for x in spec[:kept]]
    return spec.update(partitions=whole)


def slice_numbers(mesh, spec, ndim):
    """Return for each device the number of its slice along each axis, a list."""
    entries = [names_of_entry(entry) for entry in spec]
    entries += [()] * (ndim - len(entries))
    sizes, rows = mesh.shape, []
    for position in np.ndindex(*mesh.axis_sizes):
        at, row = dict(zip(mesh.axis_names, position)), []
        for names in entries:
            number = 0
            for name in names:
                number = number * sizes[name] + at[name]
            row.append(number)
        rows.append(tuple(row))
    return rows


@cache
def _equivalent(placement, wanted, ndim):
    return wanted.sharding.is_equivalent_to(placement.sharding, ndim)


def lies_like(placement, wanted, ndim):
    """Return whether arrays of `ndim` axes have the same parts in two placements.

    The meshes may call their axes differently: the parts and the devices count.
    """
    return placement is wanted or _equivalent(placement, wanted, ndim)


P = PartitionSpec
