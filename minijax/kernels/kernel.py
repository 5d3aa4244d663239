"""The kernel IR: loop nests over scalar expressions, as data.

A kernel says what is computed for each index, and in which element of which
parameter it is found or left. It knows nothing of vectors, threads or addresses,
so that one kernel serves every machine.
"""

# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import re

import numpy as np

from minijax.kernels.parts import Fold, Load, print_kernel, sha256, union
from minijax.kernels.scalar_ops import in_registers, scalar_ops


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A scalar for each index: one line of a kernel.

    Attributes:
      op: "constant", "index", "load", "fold", "running", or the name of a scalar
        operation.
      args: the nodes that it is computed from.
      dtype: of the scalar.
      level: the axes along which it varies, a tuple.
      detail: a number for "constant", an axis for "index", a `Load` or a `Fold`.
    """

    op: str
    args: tuple
    dtype: np.dtype
    level: tuple
    detail: object = None


def constant(value, dtype):
    """Return the node of a number."""
    dtype = in_registers(dtype)
    return Node("constant", (), dtype, (), dtype.type(value))


def index(axis):
    """Return the node of the index along an axis."""
    return Node("index", (), np.dtype(np.int64), (axis,), axis)


def apply(op, *args, dtype=None):
    """Return the node of a scalar operation, by its name in a table.

    A name in `recastings` needs the dtype of the result besides the nodes `args`.
    """
    if dtype is None:
        dtype = scalar_ops[op].result or args[-1].dtype
    return Node(op, args, in_registers(dtype), union([arg.level for arg in args]))


def load(parameter, place, guards=(), other=0, computed=()):
    """Return the node of an element of a parameter.

    Args:
      parameter, place, guards, other: as in a `Load`.
      computed: pairs of a node of int64 and a `Term`, which are added to the place.
    """
    args, terms = zip(*computed) if computed else ((), ())
    dtype = in_registers(parameter.dtype)
    levels = [place.axes, *[guard.place.axes for guard in guards]]
    detail = Load(parameter, place, tuple(guards), dtype.type(other), terms)
    return Node("load", args, dtype, union([*levels, *[x.level for x in args]]), detail)


def fold(how, axes, arg):
    """Return the node of what remains of another when `axes` are folded away."""
    level = tuple(axis for axis in arg.level if axis not in axes)
    dtype = np.dtype(np.int64) if how.startswith("arg") else arg.dtype
    return Node("fold", (arg,), dtype, level, Fold(how, tuple(axes)))


@dataclasses.dataclass(eq=False, slots=True)
class Kernel:
    """A loop nest.

    Attributes:
      name: of the operation that it is made from.
      sizes: the size of each axis.
      parameters: what is read, then what is written.
      nodes: list of `Node`, each after those that it is computed from.
      stores: list of `Store`.
    """

    name: str
    sizes: tuple
    parameters: tuple
    nodes: tuple
    stores: tuple

    @property
    def label(self):
        """A name that no other text has: it ends with a hash."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return f"{name}_{sha256(str(self).encode()).hexdigest()[:6]}"

    def __str__(self):
        return print_kernel(self)


def needed(goals, ends=()):
    """Return the set of goals and all they are made of; the walk stops at `ends`."""
    found, open_ends = set(), [*goals]
    while open_ends:
        node = open_ends.pop()
        if node not in found:
            found.add(node)
            open_ends.extend(() if node in ends else node.args)
    return found
