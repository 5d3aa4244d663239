# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Greedy loop fusion: each launch takes in those that make what it reads."""

import math
from typing import NamedTuple

from minijax.fusion.index_maps import indices, seen_along, unit
from minijax.fusion.merging import Merger, merged
from minijax.fusion.parts import elements, uses_of
from minijax.kernels.kernel import Affine
from minijax.llvm.targets import current_target


class Loops(NamedTuple):
    """Launches in the same loops.

    Attributes:
      sizes: of the loops, from the outermost inwards.
      homes: from the numbers of launches to the indices at which they are computed: an
        `Affine` along the loops for each axis of the launch.
    """

    sizes: tuple
    homes: dict


def moved_to(nest, maps, sizes):
    """Return a nest in other loops: `maps` says what each old index is along them."""
    rank, homes = len(sizes), {}
    for number, home in nest.homes.items():
        homes[number] = tuple([seen_along(at, maps, rank) for at in home])
    return Loops(tuple(sizes), homes)


def split_axis(axis, inner, sizes):
    """Return the index along each of some axes, along those with two for one, and the
    sizes of these."""
    sizes = (*sizes[:axis], sizes[axis] // inner, inner, *sizes[axis + 1 :])
    maps = [*unit(len(sizes))]
    outer, last = maps.pop(axis), maps[axis]
    both = [inner * a + b for a, b in zip(outer.strides, last.strides)]
    maps[axis] = Affine(0, tuple(both))
    return maps, sizes


def handed_over(first, second, uses):
    """Return what the second nest reads of the first: places along their loops."""
    links = []
    for reader in second.homes:
        for buffer, node in uses.parts[reader].loads:
            if uses.maker(buffer) in first.homes:
                part, store = uses.makers[buffer][0]
                made = seen_along(
                    store.place, first.homes[part.number], len(first.sizes)
                )
                home, alike = second.homes[reader], store.parameter.dtype == node.dtype
                read = seen_along(node.detail.place, home, len(second.sizes))
                links.append((made, read, alike and not node.detail.guards))
    return links


def paired(first, second, link):
    """Return the indices of the first nest at which the second reads, or None; and a
    loop of the second to split, if there would be some then."""
    made, read, plain = link
    if not plain or math.prod(first.sizes) != math.prod(second.sizes):
        return None, None
    maps, cut = indices(read, second.sizes, made, first.sizes)
    used = {axis for at in maps or () if at for axis in at.axes}
    for axis, at in enumerate(maps or ()):
        if at is None:  # it was folded: the reader walks along it once more
            free = [k for k, n in enumerate(second.sizes) if n == first.sizes[axis]]
            free = [k for k in free if k not in used]
            if not free:
                return None, None
            maps = [*maps[:axis], unit(len(second.sizes))[free[-1]], *maps[axis + 1 :]]
            used.add(free[-1])
    return maps and tuple(maps), cut


def may_be_one(nest, last, uses, target):
    """Return whether launches can be one kernel that stands where the last one did."""
    parts = [uses.parts[number] for number in nest.homes]
    for part in parts:
        ends = [buffer for buffer, _ in (*part.loads, *part.stores)]
        later = [n for n in uses.users[part.number] if n not in nest.homes]
        if min(later, default=last + 1) < last or not uses.shared.isdisjoint(ends):
            return False
        home = nest.homes[part.number]
        for kept, folded in part.facts.orders:
            if max(home[kept].axes, default=-1) > min(home[folded].axes):
                return False
    return sum([part.facts.ops for part in parts]) <= target.wide


def folded_axes(nest, uses):
    """Return the loops along which a nest folds."""
    axes = set()
    for number, home in nest.homes.items():
        folded = uses.parts[number].facts.folded
        axes.update([axis for own in folded for axis in home[own].axes])
    return axes


def pasted(first, second, uses, target):
    """Return the first nest in the loops of the second, which reads what it makes; or
    None, if that cannot be or if a row that is walked again is too long."""
    links = handed_over(first, second, uses)
    found = [paired(first, second, link) for link in links]
    maps, cut = found[0]
    if cut:
        second = moved_to(second, *split_axis(cut[0], cut[1], second.sizes))
        return pasted(first, second, uses, target)
    if maps is None or any(other != maps for other, _ in found):
        return None
    both = moved_to(first, maps, second.sizes)
    if elements(both.sizes, folded_axes(both, uses)) > target.near:
        return None
    both.homes.update(second.homes)
    return both if may_be_one(both, max(second.homes), uses, target) else None


def greedy_nests(uses, target):
    """Return the nest of each launch, by its number."""
    nests = {}
    for number, part in uses.parts.items():
        rank = len(part.kernel.sizes)
        nests[number] = Loops(part.kernel.sizes, {number: unit(rank)})
        for maker in sorted({uses.maker(buffer) for buffer, _ in part.loads} - {None}):
            first, second = nests[maker], nests[number]
            both = (
                None if maker in second.homes else pasted(first, second, uses, target)
            )
            nests.update(dict.fromkeys(both.homes if both else (), both))
    return nests


def fuse_greedily(program, target=None):
    """Return a program of the same results with fewer kernels.

    Args:
      program: a `LoweredProgram`.
      target: the `Target` that says how long a row may be, by default the current one.
    """
    target = target or current_target()
    uses = uses_of(program, target)
    nests, needed, steps = greedy_nests(uses, target), {*uses.kept}, []
    for number, step in reversed([*enumerate(program.steps)]):
        nest = nests.get(number, Loops((), {number: ()}))
        if number < max(nest.homes):
            continue
        if len(nest.homes) > 1:
            step = merged(Merger(nest.sizes, nest.homes, uses), needed)
        elif step.programs:
            inner = [fuse_greedily(each, target) for each in step.programs]
            step = step.with_programs(inner)
        steps.append(step)
        needed.update(step.reads)
    return program._replace(steps=steps[::-1])
