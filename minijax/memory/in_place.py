# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels that write their result over an operand."""

import math

from minijax.kernels.kernel import Kernel, Node, needed
from minijax.kernels.parts import is_affine
from minijax.kernels.program_steps import Launch


def may_overwrite(step, old, new):
    """Return whether a step may write its result `new` where its operand `old` is.

    It may, if it is a kernel that reads each element of `old` at the place where it
    writes one of `new`, and before. No later step may need `old`.
    """
    if type(step) is not Launch or (old.dtype, old.size) != (new.dtype, new.size):
        return False
    sources, targets = _parameters_of(step, old), _parameters_of(step, new)
    if len(sources) != 1 or len(targets) != 1:
        return False
    usual = _element_by_element(step.kernel, sources[0], targets[0])
    return usual and is_affine(step.kernel)


def _parameters_of(step, buffer):
    pairs = zip(step.kernel.parameters, step.buffers)
    return [parameter for parameter, owner in pairs if owner is buffer]


def _element_by_element(kernel, source, target):
    loads = [n for n in kernel.nodes if n.op == "load" and n.detail.parameter == source]
    stores = [store for store in kernel.stores if store.parameter == target]
    places = {store.place for store in stores}
    if source.dtype != target.dtype or not loads or not _apart(places):
        return False
    if any(x.detail.guards or x.detail.place not in places for x in loads):
        return False
    return _in_one_sweep(kernel, loads, stores)


def _apart(places):
    """Return whether places never meet: the same strides, from different offsets."""
    strides = {place.strides for place in places}
    if len(strides) != 1:
        return False
    step = math.gcd(*strides.pop())
    return len({place.offset % step if step else 0 for place in places}) == len(places)


def _in_one_sweep(kernel, loads, stores):
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
    waits = {_folds_before(store.node) for store in stores}
    return len(waits) == 1 and dependent.intersection(folds) <= waits.pop()


def _folds_before(node):
    """Return the folds that a node depends on."""
    return frozenset(node for node in needed([node]) if node.op == "fold")


def in_one_buffer(launch, pairs):
    """Return a `Launch` that finds operands where it puts results.

    Args:
      launch: a `Launch`.
      pairs: pairs of buffers, of an operand and of the result that takes its place.
    """
    kernel, new = launch.kernel, {}
    firsts = [[_parameters_of(launch, x)[0] for x in pair] for pair in pairs]
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
