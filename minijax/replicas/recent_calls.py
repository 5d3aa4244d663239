# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.
"""Calls like the one before: they go straight to the program of their mesh."""

from typing import NamedTuple

from minijax.arrays.array import ArrayImpl
from minijax.arrays.settings import config
from minijax.core import EvalTrace, current_trace, watchers
from minijax.forgetting.remembering import cache_by_object
from minijax.pytrees.treedefs import tree_flatten
from minijax.replicas.sharded_maps import MeshProgram, mesh_program
from minijax.replicas.specifications import parameters_of


class Known(NamedTuple):
    """A call that was made: what it depended on, its program, and its result's tree.

    A tree is None for arrays alone, and for one array.
    """

    surroundings: tuple
    tree: object
    avals: list
    placements: list
    program: MeshProgram
    consts: list
    out_tree: object


_recent = cache_by_object()
LEAF = tree_flatten(0)[1]


class Recent:
    """The last call of a function, if all its arguments were arrays.

    Args:
      *options: arguments of the function's maker; with any of them no call is kept.
    """

    def __init__(self, *options):
        self.known, self.kept = None, all(option == () for option in options)
        _recent[self] = self  # `clear_caches` clears it

    def clear(self):
        """Forget the call."""
        self.known = None

    def unlock(self):
        """Do nothing after a fork: there is no lock."""

    def note(self, args, kwargs, body, specs, params):
        """Keep a call, whose body has just been run."""
        leaves, tree = _flat(args)
        if kwargs or not self.kept or type(current_trace()) is not EvalTrace:
            return
        if all(type(x) is ArrayImpl for x in leaves):
            program = mesh_program(**parameters_of(body, specs, params))
            avals, placements = [x.aval for x in leaves], [x.placement for x in leaves]
            around = *config.state, current_trace()
            tree_of_result = None if body.out_tree == LEAF else body.out_tree
            ends = program, body.consts, tree_of_result
            self.known = Known(around, tree, avals, placements, *ends)

    def again(self, args, kwargs):
        """Return the result of a call like the one that is known, or None."""
        known = self.known
        if known is None or kwargs or watchers:
            return None
        leaves, tree = _flat(args)
        if tree != known.tree or len(leaves) != len(known.avals):
            return None
        (values, overrides), trace = config.state, current_trace()
        before = known.surroundings
        if values is not before[0] or overrides is not before[1]:
            return None
        if trace is not before[2]:
            return None
        for x, aval, placement in zip(leaves, known.avals, known.placements):
            if type(x) is not ArrayImpl or x.placement is not placement:
                return None
            if x.aval is not aval and x.aval != aval:
                return None
        found = known.program([*known.consts, *leaves] if known.consts else leaves)
        return found[0] if known.out_tree is None else known.out_tree.unflatten(found)


def _flat(args):
    """Return the leaves of arguments and their tree; it is None for arrays alone."""
    for x in args:
        if type(x) is not ArrayImpl:
            return tree_flatten(args)
    return args, None
