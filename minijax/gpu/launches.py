"""Launches: which threads do which indices of a kernel, and how many there are."""

# Made from chapters/34_gpu.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import NamedTuple

from minijax.kernels.parts import elements


class LaunchShape(NamedTuple):
    """How the threads of a GPU share a kernel.

    A team of threads does all that belongs to one index of the `outer` axes.

    Attributes:
      outer: axes.
      team: how many threads there are in a team.
      teams: how many teams there are in a block.
      across: whether neighbours in a block are of neighbouring teams, and not of one.
    """

    outer: tuple
    team: int = 1
    teams: int = 256
    across: bool = False

    @property
    def threads(self):
        """How many threads there are in a block."""
        return self.team * self.teams

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have teams without work."""
        return math.ceil(elements(kernel, self.outer) / self.teams)


def outer_axes(kernel):
    """Return the axes along which all indices may be done at the same time."""
    axes = set(range(len(kernel.sizes)))
    for node in kernel.nodes:
        if node.op in ("fold", "running"):
            axes.difference_update(node.detail.axes)
    for store in kernel.stores:
        axes &= {axis for axis in store.axes if never_meet(kernel, store, axis)}
    return tuple(sorted(axes))


def never_meet(kernel, store, axis):
    """Return whether indices along an axis always store into different elements."""
    update = store.update
    if not update or update.distinct:
        return True
    moves = [abs(store.place.strides[x]) for x in update.axes if x != axis]
    others = math.gcd(*moves, *[abs(term.stride) for term in update.terms])
    step = abs(store.place.strides[axis])
    still = not any(axis in number.level for number in update.at)
    return still and step > 0 and step * (kernel.sizes[axis] - 1) < max(others, 1)


def launch_of(kernel):
    """Return the launch that suits a kernel."""
    outer = outer_axes(kernel)
    inner = [size for axis, size in enumerate(kernel.sizes) if axis not in outer]
    longest = max(inner, default=0)
    if longest < 8 or not is_shareable(kernel):
        return LaunchShape(outer)
    if outer and lies_along(kernel) == outer[-1] and kernel.sizes[outer[-1]] >= 32:
        return LaunchShape(outer, team=8, teams=32, across=True)
    if longest <= 1024 and elements(kernel, outer) >= 64:
        return LaunchShape(outer, team=32, teams=8)
    return LaunchShape(outer, team=min(1024, 32 * math.ceil(longest / 128)), teams=1)


def is_shareable(kernel):
    """Return whether the turns of its inner loops may be done in any order."""
    runs = any(node.op == "running" for node in kernel.nodes)
    pairs = [(store, axis) for store in kernel.stores for axis in store.axes]
    return not runs and all(never_meet(kernel, *pair) for pair in pairs)


def lies_along(kernel):
    """Return the axis along which the largest arrays it loads lie, or None."""
    loads = [node.detail.place for node in kernel.nodes if node.op == "load"]
    places = [place for place in loads if len(place.axes) > 1]
    counts = [elements(kernel, place.axes) for place in places]
    along = {
        min(place.axes, key=lambda axis: abs(place.strides[axis]))
        for place, count in zip(places, counts)
        if count == max(counts)
    }
    return along.pop() if len(along) == 1 else None
