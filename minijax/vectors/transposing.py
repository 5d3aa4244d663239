"""Transposition in square tiles: rows read in one direction and used in the other."""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from typing import NamedTuple

from minijax.kernels.checking import step_checks
from minijax.kernels.kernel import Node
from minijax.kernels.parts import Loop, Store
from minijax.llvm.kernel_text import step_writers, write_steps
from minijax.llvm.loads_and_stores import from_memory
from minijax.llvm.types import pointer_to, type_in_memory
from minijax.llvm.writing import LLVMFunction
from minijax.vectors.loops import everything, is_loop, widest


def turned(f, kind, vectors):
    """Write the transpose of a square of vectors; return their names.

    Squares are exchanged across the diagonal: of half the size, of a quarter, ...
    """
    lanes = half = len(vectors)
    while half > 1:
        half //= 2
        orders = [
            [lane - half + lanes if lane & half else lane for lane in range(lanes)],
            [lane + lanes if lane & half else lane + half for lane in range(lanes)],
        ]
        for number in [number for number in range(lanes) if not number & half]:
            pair = vectors[number], vectors[number + half]
            for place, order in zip((number, number + half), orders):
                vectors[place] = f.shuffle(kind, *pair, order, lanes)
    return vectors


class Tile(NamedTuple):
    """A step of a nest inside of a loop with vectors: a loop over `axis`, tile by tile.

    The loads in `turned` lie in rows along `axis`, not along that of the vectors.
    """

    axis: int
    body: list
    turned: list


def with_tiles(kernel, steps, target):
    """Return the steps of a nest, with tiles where they help."""
    return [
        tiled(kernel, step, target) or step if is_loop(step) else step for step in steps
    ]


def tiled(kernel, loop, target):
    """Return a nest with tiles instead of a loop, or None if they do not help.

    No number may go from one turn to another: the loops change places.
    """
    steps = [*everything([loop])]
    body = [*dict.fromkeys(step for step in steps if not is_loop(step))]
    stores = [step for step in body if isinstance(step, Store)]
    if not all(isinstance(step, Node | Store) for step in body) or len(stores) != 1:
        return None
    if stores[0].update:
        return None
    lanes = min(target.lanes(widest(loop)), target.registers)  # a register for each row
    axes = [axis for axis in stores[0].place.axes if kernel.sizes[axis] >= lanes]
    for along in [k for k in axes if stores[0].place.strides[k] == 1]:
        for across in axes:
            turned = [step for step in body if _is_turned(step, along, across)]
            if turned and lanes > 2:
                nest = Loop(along, [Tile(across, body, turned)], (), lanes)
                for axis in reversed(stores[0].place.axes):
                    if axis not in (along, across):
                        nest = loop._replace(axis=axis, body=[nest])
                return nest
    return None


def _is_turned(step, along, across):
    """Return whether a step is a load whose neighbours lie in the other direction."""
    if not isinstance(step, Node) or step.op != "load":
        return False
    if step.detail.guards or step.args:
        return False
    strides = step.detail.place.strides
    return strides[across] == 1 and abs(strides[along]) > 1


def write_tiles(f, tile):
    """Write the tiles of a `Tile`; the last may not be full."""
    size, lanes = f.kernel.sizes[tile.axis], f.lanes
    body = [step for step in tile.body if step not in tile.turned]

    def write(index, live):
        squares = [write_square(f, tile.axis, index, x, live) for x in tile.turned]

        def turn(number, _):
            f.indices[tile.axis] = f.sum(index, number)
            for node, square in zip(tile.turned, squares):
                f.names[node] = write_line(f, node, square, number)
            write_steps(f, body)
            return []

        return f.turns(0, 1, live, [], turn)

    f.turns(0, lanes, size // lanes, [], lambda index, _: write(index, lanes))
    if size % lanes:
        write(size - size % lanes, size % lanes)


def write_square(f, axis, index, node, live):
    """Write what puts the columns of a tile into scratch memory, as rows."""
    parameter, place = node.detail[:2]
    f.indices[axis] = index
    kind, start = type_in_memory(parameter.dtype), f.address(parameter, place)
    square, stride = f.scratch(node, kind, f.lanes * f.lanes), f.along(place)
    if live == f.live == f.lanes:
        name, text = square_function(kind, f.lanes)
        f.needed[name] = text
        pointers = f"{kind}* {start}, i64 {stride}, {kind}* {square}"
        f.line(f"call void @{name}({pointers})")
        return square

    write_edge(f, axis, index, node, live, square)
    return square


def write_line(f, node, square, number):
    """Write the load of a line of a tile."""
    dtype = node.detail.parameter.dtype
    kind, at = type_in_memory(dtype), f.emit(f"mul i64 {number}, {f.lanes}", "a")
    line = f.load(kind, f.at(kind, square, at), f.lanes)
    return from_memory(f, dtype, line, f.lanes)


step_writers[Tile] = write_tiles


def check_tile(walk, tile):
    """Check a tile: its loads are read from it, and its body is that of a loop."""
    lanes = [loop.lanes for loop in walk.loops if loop.lanes]
    walk.require(lanes, tile, "no vectors lie along the other axis")
    step_checks[Loop](walk, Loop(tile.axis, tile.body, ()))


step_checks[Tile] = check_tile


def write_edge(f, axis, index, node, live, square):
    """Write the same for a tile that is not full, number by number."""
    parameter, place = node.detail[:2]
    kind, along, first = type_in_memory(parameter.dtype), f.axis, f.indices[f.axis]

    def line(number, _):
        f.indices[axis] = f.sum(index, number)
        start = f.emit(f"mul i64 {number}, {f.lanes}", "a")

        def cell(lane, _):
            f.indices[along] = f.sum(first, lane)
            x = f.load(kind, f.address(parameter, place))
            f.store(kind, x, f.at(kind, square, start, lane))
            return []

        return f.turns(0, 1, f.live, [], cell)

    f.turns(0, 1, live, [], line)
    f.indices[along] = first


@functools.cache
def square_function(kind, lanes):
    """Return the name and the text of a function that transposes a full tile.

    Its arguments are the first number, the stride between rows, and the scratch memory.
    """
    f, name, vectors = LLVMFunction(), f"transpose_{kind}_v{lanes}", []
    for lane in range(lanes):
        distance = f.emit(f"mul i64 %stride, {lane}", "a")
        vectors.append(f.load(kind, f.at(kind, "%x", distance), lanes))
    for number, x in enumerate(turned(f, kind, vectors)):
        f.store(kind, x, f.at(kind, "%square", number * lanes), lanes)
    pointer = pointer_to(kind)
    ends = (f"{pointer} noalias readonly", "%x"), (f"{pointer} noalias", "%square")
    params = ends[0], ("i64", "%stride"), ends[1]
    return name, f.definition(name, params, "nounwind noinline")
