"""Unroll and jam: the turns of a loop side by side, in the loops inside of it.

And which turns may be done so, or as vectors with masks, and which marks go together.

Reference: F. Allen and J. Cocke, *A catalogue of optimizing transformations* (1972).
"""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses

import numpy as np

from minijax._registry import Registry
from minijax.kernels.kernel import Node, apply, constant
from minijax.kernels.parts import Combine, Loop, Start, Store

# From types of steps with others inside to functions that return them for all turns
# of a loop, side by side (below).
jammers: dict = Registry()


def check_marks(walk, loop):
    """Check that the marks of a loop say one way to do its turns."""
    counts = loop.lanes, loop.together, loop.strip, loop.team
    walk.require(min(counts) >= 0, loop, "it has less than nothing at once")
    ways = loop.lanes, loop.strip, loop.together or loop.unrolled
    walk.require(sum(map(bool, ways)) < 2, loop, "it is to be done in two ways")
    whole = not (loop.parallel and walk.loops)
    walk.require(whole, loop, "only an outermost loop is done by many")
    walk.require(len({*loop.folds}) == len(loop.folds), loop, "a fold is there twice")


def jams(step):
    """Return whether there are turns of a step side by side."""
    return type(step) in jammers or isinstance(step, Node | Store | Start | Combine)


def fits_masks(loop):
    """Return whether a mask for each vector is all that the body of a loop needs.

    Its body loads one element or neighbours, stores neighbours, and folds nothing.
    """
    return all(_fits_mask(step, loop.axis) for step in loop.body)


def _fits_mask(step, axis):
    if isinstance(step, Store):
        return not step.update and step.place.strides[axis] == 1
    if isinstance(step, Node) and step.op == "load":
        return not step.args and step.detail.place.strides[axis] in (0, 1)
    return isinstance(step, Node)


class Turn:
    """A turn of a loop: its index is a number ahead of another one's.

    Attributes:
      axis, ahead: of the loop, and the number.
      copies: from nodes that vary over the axis to theirs of this turn.
    """

    def __init__(self, axis, ahead):
        self.axis, self.ahead, self.copies = axis, ahead, {}

    def node(self, node):
        """Return what a node is in this turn."""
        if not self.ahead or self.axis not in node.level:
            return node
        if node not in self.copies:
            self.copies[node] = self.copy(node)
        return self.copies[node]

    def copy(self, node):
        """Return the copy of a node."""
        if node.op == "index":
            return apply("add", node, constant(self.ahead, np.dtype(np.int64)))
        args, detail = tuple(map(self.node, node.args)), node.detail
        if node.op == "load":
            guards = [x._replace(place=self.place(x.place)) for x in detail.guards]
            place = self.place(detail.place)
            detail = detail._replace(place=place, guards=tuple(guards))
        return dataclasses.replace(node, args=args, detail=detail)

    def place(self, place):
        """Return where an element is in this turn."""
        further = self.ahead * place.strides[self.axis]
        return place._replace(offset=place.offset + further)

    def steps(self, step):
        """Return the steps of this turn in the place of one that is no loop."""
        if isinstance(step, Node):
            copy = self.node(step)
            return [*copy.args, copy] if step in copy.args else [copy]
        if isinstance(step, Store):
            nodes = {node: self.node(node) for node in step.args}
            return [step.with_nodes(nodes)._replace(place=self.place(step.place))]
        return [step._replace(fold=self.node(step.fold))]


def jammed(steps, turns):
    """Return steps that do each of some steps for all turns, before the next one."""
    made = [jammers.get(type(step), _each)(step, turns) for step in steps]
    return [step for some in made for step in some]


def _each(step, turns):
    return dict.fromkeys(new for turn in turns for new in turn.steps(step))


def _loop(loop, turns):
    folds = dict.fromkeys(turn.node(fold) for fold in loop.folds for turn in turns)
    return [loop._replace(body=jammed(loop.body, turns), folds=tuple(folds))]


jammers[Loop] = _loop
