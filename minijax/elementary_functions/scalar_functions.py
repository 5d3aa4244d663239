"""Functions of scalars, written with scalar operations.

What a processor has no instruction for is written here once, with the operations that
it has, and without branches: so it can be done to one number, or to as many as fit into
a register, on every machine for which kernels are emitted.
"""

# Made from chapters/23_functions_ground.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from itertools import chain
from typing import NamedTuple

from minijax.kernels.builder import NodeBuilder, rewritten
from minijax.kernels.ir import define_scalar_op
from minijax.kernels.loop_nests import Node, backward_slice
from minijax.llvm.instructions import define_instruction

define_scalar_op(
    "fma",
    lambda x, y, z: x * y + z,
    "f",
    arity=3,
    note="Rounded once where the processor can do that, and twice elsewhere.",
)
define_instruction("fma", f="call {t} @llvm.fmuladd.{s}({t} {x}, {t} {y}, {t} {z})")


class SlowPath(NamedTuple):
    """What a function is for few numbers, and takes long.

    Attributes:
      condition: the node of a bool: whether a number is one of these.
      nodes: what is computed for them, behind the function's other nodes.
      result: the node of the function's value for them.
      rarer: the `SlowPath` of those among them for which that is wrong, or None.
    """

    condition: Node
    nodes: tuple
    result: Node
    rarer: "SlowPath | None" = None


class ScalarFunction(NamedTuple):
    """A function of scalars.

    Attributes:
      label: its name and its dtype.
      args: nodes that stand for the arguments; their op is "argument".
      nodes: what is computed, each node behind those that it is computed from.
      result: the node of the value.
      rare: a `SlowPath`, or None. A machine may compute its nodes always, or only if it
        meets a number for which the condition is true.
    """

    label: str
    args: tuple
    nodes: tuple
    result: Node
    rare: SlowPath | None = None

    @property
    def operations(self):
        """How many operations are computed for every number."""
        return sum(node.op != "constant" for node in self.nodes)


class FunctionNodeBuilder(NodeBuilder):
    """Writes the nodes of a function."""

    rare = None

    def rarely(self, condition, write, usual):
        """Return a function's value: `usual`, but where a condition is true another.

        Args:
          condition: a node.
          write: a function that writes the nodes of the other value, and returns it;
            it may call `rarely` for those that are rarer still.
          usual: a node.
        """
        self.nodes, common = [], self.nodes
        result = write()
        path = SlowPath(condition, (*self.nodes,), result, self.rare)
        self.nodes, self.rare = common, path
        return usual


def build_function(label, body, dtypes):
    """Return the `ScalarFunction` that a body writes.

    Args:
      label: its name.
      body: a function of a `FunctionNodeBuilder` and of nodes, which returns a node.
      dtypes: of the arguments.
    """
    k = FunctionNodeBuilder()
    args = [Node("argument", (), dtype, (), n) for n, dtype in enumerate(dtypes)]
    result, rare = body(k, *args), None
    paths = slow_paths(k.rare)
    ends = [node for path in paths for node in (path.condition, path.result)]
    kept = backward_slice([result, *ends])

    def only_kept(nodes):
        return tuple(node for node in nodes if node in kept)

    for path in reversed(paths):
        rare = path._replace(nodes=only_kept(path.nodes), rarer=rare)
    return ScalarFunction(label, (*args,), only_kept(k.nodes), result, rare)


def slow_paths(rare):
    """Return a slow path and those for rarer and rarer numbers, as a list."""
    return [rare, *slow_paths(rare.rarer)] if rare else []


def inline_function(k, function, args):
    """Write the nodes of a function for given arguments; return that of its value."""
    paths = slow_paths(function.rare)
    nodes = chain(function.nodes, *[path.nodes for path in paths])
    new = rewritten(k, nodes, new=zip(function.args, args))
    value = new[function.result]
    for path in paths:  # the rarer, the later, and so the last to be chosen
        value = k.select(new[path.condition], new[path.result], value)
    return value


def expand_calls(kernel, find):
    """Return a kernel in which functions are written out.

    Args:
      kernel: a `Kernel`.
      find: from the name of a scalar operation and a dtype to a `ScalarFunction`, or
        None.
    """
    k = NodeBuilder()

    def written_out(node, args):
        found = args and find(node.op, args[-1].dtype)
        return inline_function(k, found, args) if found else None

    new = rewritten(k, kernel.nodes, instead=written_out)
    stores = tuple(store.with_nodes(new) for store in kernel.stores)
    nodes = tuple(dict.fromkeys(k.nodes))
    return dataclasses.replace(kernel, nodes=nodes, stores=stores)


def emit_polynomial(k, x, coefficients):
    """Write a polynomial, by Horner's rule; a long one in pairs.

    Args:
      x: a node.
      coefficients: numbers or nodes, that of 1 first.
    """
    if len(coefficients) > 9:
        return emit_estrin_step(k, x, coefficients)
    *rest, result = coefficients
    result = result if isinstance(result, Node) else k.number(result, x)
    for coefficient in reversed(rest):
        result = k.fma(result, x, coefficient)
    return result


def emit_estrin_step(k, x, coefficients):
    """Write a polynomial as one of the square of x, with coefficients a + b x."""
    return emit_polynomial(k, k.mul(x, x), pairs_of(k, x, coefficients))


def pairs_of(k, x, coefficients):
    """Write a + b x for each two coefficients; one without a partner stays."""
    evens, odds = coefficients[::2], coefficients[1::2]
    pairs = [k.fma(b, x, a) for a, b in zip(evens, odds)]
    return [*pairs, *evens[len(odds) :]]


def emit_polynomial_tail(k, start, x, coefficients):
    """Write ``start + x**2 * p(x)``, where p is a polynomial."""
    return emit_polynomial(k, k.mul(x, x), [start, *pairs_of(k, x, coefficients)])


def emit_upper_clamp(k, x, limit):
    """Write the lesser of a number and a limit; NaN stays."""
    return k.select(k.gt(x, limit), limit, x)


def emit_lower_clamp(k, x, limit):
    """Write the greater of a number and a limit; NaN stays."""
    return k.select(k.lt(x, limit), limit, x)
