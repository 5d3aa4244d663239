"""Places of buffers, and what may be written over: operands, donated arguments."""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/21_machine_rest.md: alias_launch_buffers (b5c6e12b).

import math
from typing import NamedTuple

from minijax.jitting.stages import nbytes
from minijax.kernels.builder import NodeBuilder, rewritten
from minijax.kernels.loop_nests import Kernel, backward_slice, load_node

# Kernels with an operand and a result in one buffer: one parameter, and one sweep.


def parameters_of_buffer(step, buffer):
    """Return the parameters of a launch's kernel that a buffer stands for."""
    pairs = zip(step.kernel.parameters, step.buffers)
    return [parameter for parameter, owner in pairs if owner is buffer]


def stores_what_is_there(store):
    """Return whether a store puts a number back to where it was loaded from."""
    node, update = store.node, store.update
    if node.op != "load" or node.args or node.detail.guards or update:
        return False
    return (node.detail.parameter, node.detail.place) == store[:2]


def alias_launch_buffers(launch, pairs):
    """Return a `Launch` that finds operands where it puts results.

    Args:
      launch: a `Launch`; other steps stay as they are.
      pairs: pairs of buffers, of an operand and of the result that takes its place.
    """
    if not hasattr(launch, "kernel"):
        return launch
    kernel, k = launch.kernel, NodeBuilder()
    firsts = [[parameters_of_buffer(launch, x)[0] for x in pair] for pair in pairs]
    parameters = dict(firsts)

    def in_place(node, args):
        if node.op == "load" and node.detail.parameter in parameters:
            parameter, place, guards, other, terms = node.detail
            computed = [*zip(args, terms)]
            parameter = parameters[parameter]
            return k.write(load_node(parameter, place, guards, other, computed))

    new = rewritten(k, kernel.nodes, instead=in_place)
    stores = [store.with_nodes(new) for store in kernel.stores]
    stores = [store for store in stores if not stores_what_is_there(store)]
    pairs = zip(kernel.parameters, launch.buffers)
    kept, buffers = zip(*[pair for pair in pairs if pair[0] not in parameters])
    needed = backward_slice([node for store in stores for node in store.args])
    nodes = tuple([node for node in k.nodes if node in needed])
    kernel = Kernel(kernel.name, kernel.sizes, kept, nodes, (*stores,))
    return launch._replace(kernel=kernel, buffers=[*buffers])


def places_are_disjoint(places):
    """Return whether places never meet: the same strides, from different offsets."""
    strides = {place.strides for place in places}
    if len(strides) != 1:
        return False
    step = math.gcd(*strides.pop())
    return len({place.offset % step if step else 0 for place in places}) == len(places)


def is_single_pass(kernel, loads, stores):
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
    return frozenset(node for node in backward_slice([node]) if node.op == "fold")


# Places of buffers; the ends of a program, and what may be in a result's memory.


class BufferLocation(NamedTuple):
    """The memory of a buffer.

    Attributes:
      kind: "input", "output" or "constant", with the number of it; or "arena", with an
        offset in bytes.
      number: as said.
    """

    kind: str
    number: int

    def __str__(self):
        return f"{self.kind} {self.number}"


class ResultReuse:
    """Memory of a result, in which other buffers may be before the result is written.

    Attributes:
      place: the `BufferLocation`.
      result: the buffer of the result.
      written: number of the step that first writes the result.
      in_use: number of the last step that needs another buffer there; -1 for none.
    """

    def __init__(self, place, result, written):
        self.place, self.result, self.written = place, result, written
        self.in_use = -1


def place_result(p, buffer, place):
    """Place a result; return its `ResultReuse`."""
    memory = ResultReuse(place, buffer, p.lives[buffer].start)
    p.places[buffer], p.results[place] = place, memory
    p.of_size[nbytes(buffer)].append(memory)
    return memory


def share_result_memory(p, memory, buffer):
    """Note that a buffer has the memory of a result before the result is written."""
    memory.in_use = p.lives[buffer].end
    if memory.in_use == memory.written:
        p.in_place[memory.written].append((buffer, memory.result))


def assign_program_io(p, donated):
    """Place the inputs, the constants and the results of a program."""
    inputs, constants = p.program.inputs, [buffer for buffer, _ in p.program.constants]
    for kind, ends in (("input", inputs), ("constant", constants)):
        p.places.update(
            (buffer, BufferLocation(kind, i)) for i, buffer in enumerate(ends)
        )
    free = [inputs[i] for i, given in enumerate(donated) if given]
    for number, buffer in enumerate(p.program.outputs):
        if buffer not in p.places:
            taken = next((old for old in free if may_take(p, old, buffer)), None)
            place = p.places.get(taken, BufferLocation("output", number))
            memory = place_result(p, buffer, place)
            if taken is not None:
                share_result_memory(p, memory, taken)
                free = [old for old in free if old is not taken]


def may_take(p, old, result):
    """Return whether a result may be written where an input is."""
    alike = (old.dtype, old.size) == (result.dtype, result.size) and old.size
    return alike and old not in p.program.outputs and p.may_replace(result, old)


def is_writable(p, place):
    """Return whether a place is memory that steps may write to."""
    return place in p.results or (place is not None and place.kind == "arena")


def dies_before_write(p, buffer, place):
    """Return whether a buffer has ended in a place when a result is written there."""
    memory = p.results.get(place)
    return memory is None or p.may_replace(memory.result, buffer)
