# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Calls like the one before: they go straight to the program of their mesh."""

import threading
from functools import wraps
from typing import NamedTuple

from minijax.arrays.array import ArrayImpl
from minijax.arrays.settings import config
from minijax.core import EvalTrace, current_trace, watchers
from minijax.forgetting.remembering import cache_by_object
from minijax.pytrees.treedefs import tree_flatten
from minijax.replicas.parallel_maps import quickly
from minijax.replicas.sharded_maps import noted

_recent = cache_by_object()
_thread = threading.local()  # `calls`, what ran on a mesh during a call
LEAF = tree_flatten(0)[1]


def _note(program, args, results):
    """Note that a program has run on a mesh; return its results."""
    if getattr(_thread, "calls", None) is not None:
        _thread.calls.append((program, args, results))
    return results


class Known(NamedTuple):
    """A call that was made: what it depended on, its program, and its result's tree.

    A tree is None for arrays alone, and for one array.
    """

    around: tuple
    tree: object
    avals: list
    placements: list
    program: object
    consts: list
    out_tree: object


class Recent:
    """The last call of a function, if all it took was arrays.

    Args:
      function: it does no more than to run a program on a mesh.
    """

    def __init__(self, function):
        self.function, self.known = function, None
        _recent[self] = self  # `clear_caches` clears it

    def clear(self):
        """Forget the call."""
        self.known = None

    def unlock(self):
        """Do nothing after a fork: there is no lock."""

    def first(self, args, kwargs):
        """Return the result of a call, and keep the call if it can be made again."""
        before, _thread.calls = getattr(_thread, "calls", None), []
        try:
            result, calls = self.function(*args, **kwargs), _thread.calls
        finally:
            _thread.calls = before
        if len(calls) == 1 and not kwargs and type(current_trace()) is EvalTrace:
            self.keep(args, result, *calls[0])
        return result

    def keep(self, args, result, program, operands, results):
        """Keep a call whose arguments and results are those of a program."""
        (leaves, tree), (found, out_tree) = _flat(args), tree_flatten(result)
        count = len(operands) - len(leaves)
        if count < 0 or not _same(operands[count:], leaves):
            return
        if _same(found, results) and all(type(x) is ArrayImpl for x in leaves):
            avals, placements = [x.aval for x in leaves], [x.placement for x in leaves]
            around = *config.state, current_trace()
            out_tree = None if out_tree == LEAF else out_tree
            ends = program, list(operands[:count]), out_tree
            self.known = Known(around, tree, avals, placements, *ends)

    def again(self, args, kwargs):
        """Return the result of a call; one like the known one needs no preparation."""
        known = self.known
        if known is None or kwargs or watchers:
            return self.first(args, kwargs)
        (values, overrides), (leaves, tree) = config.state, _flat(args)
        around, avals = known.around, known.avals
        if values is not around[0] or overrides is not around[1]:
            return self.first(args, kwargs)
        if current_trace() is not around[2] or len(leaves) != len(avals):
            return self.first(args, kwargs)
        if tree != known.tree:
            return self.first(args, kwargs)
        for x, aval, placement in zip(leaves, avals, known.placements):
            if type(x) is not ArrayImpl or x.placement is not placement:
                return self.first(args, kwargs)
            if x.aval is not aval and x.aval != aval:
                return self.first(args, kwargs)
        found = known.program([*known.consts, *leaves] if known.consts else leaves)
        return found[0] if known.out_tree is None else known.out_tree.unflatten(found)


def _same(some, others):
    """Return whether lists hold the same objects."""
    return len(some) == len(others) and all(x is y for x, y in zip(some, others))


def _flat(args):
    """Return the leaves of arguments and their tree; it is None for arrays alone."""
    for x in args:
        if type(x) is not ArrayImpl:
            return tree_flatten(args)
    return args, None


def _quick(function):
    """Return a function whose calls go straight to a program, if they can."""
    again = Recent(function).again

    @wraps(function)
    def quick(*args, **kwargs):
        return again(args, kwargs)

    return quick


noted.value, quickly.value = _note, _quick
