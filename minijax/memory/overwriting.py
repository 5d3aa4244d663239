"""Kernels with an operand and a result in one buffer: one parameter, and one sweep."""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.kernels.kernel import Kernel, Node, needed


def parameters_of(step, buffer):
    """Return the parameters of a launch's kernel that a buffer stands for."""
    pairs = zip(step.kernel.parameters, step.buffers)
    return [parameter for parameter, owner in pairs if owner is buffer]


def in_one_buffer(launch, pairs):
    """Return a `Launch` that finds operands where it puts results.

    Args:
      launch: a `Launch`.
      pairs: pairs of buffers, of an operand and of the result that takes its place.
    """
    kernel, new = launch.kernel, {}
    firsts = [[parameters_of(launch, x)[0] for x in pair] for pair in pairs]
    parameters = dict(firsts)
    for node in kernel.nodes:
        detail = node.detail
        if node.op == "load" and detail.parameter in parameters:
            detail = detail._replace(parameter=parameters[detail.parameter])
        args = tuple([new[arg] for arg in node.args])
        new[node] = Node(node.op, args, node.dtype, node.level, detail)
    stores = [store.with_nodes(new) for store in kernel.stores]
    pairs = zip(kernel.parameters, launch.buffers)
    kept, buffers = zip(*[pair for pair in pairs if pair[0] not in parameters])
    nodes = tuple(new.values())
    kernel = Kernel(kernel.name, kernel.sizes, kept, nodes, (*stores,))
    return launch._replace(kernel=kernel, buffers=[*buffers])


def apart(places):
    """Return whether places never meet: the same strides, from different offsets."""
    strides = {place.strides for place in places}
    if len(strides) != 1:
        return False
    step = math.gcd(*strides.pop())
    return len({place.offset % step if step else 0 for place in places}) == len(places)


def in_one_sweep(kernel, loads, stores):
    """Return whether all that depends on `loads` is stored in the loops of `stores`.

    Those are stores along the same axes that wait for the same folds; and the folds of
    what was loaded have to be among these, so that they are over before.
    """
    folds = [node for node in kernel.nodes if node.op == "fold"]
    if not folds and len({store.place.axes for store in kernel.stores}) == 1:
        return True
    dependent = set(loads)
    for node in kernel.nodes:
        if not dependent.isdisjoint(node.args):
            dependent.add(node)
    stores = [*stores, *[store for store in kernel.stores if store.node in dependent]]
    if len({store.place.axes for store in stores}) > 1:
        return False
    waits = {folds_before(store.node) for store in stores}
    return len(waits) == 1 and dependent.intersection(folds) <= waits.pop()


def folds_before(node):
    """Return the folds that a node depends on."""
    return frozenset(node for node in needed([node]) if node.op == "fold")
