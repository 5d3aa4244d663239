"""Transposes: a block turns a tile of 32 x 32 numbers around in shared memory."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from contextlib import contextmanager
from dataclasses import dataclass

from minijax.gpu.cuda_text import WARP, write_node, writers
from minijax.gpu.launches import outer_axes
from minijax.gpu.lines import load_text, write_store
from minijax.gpu.operations import c_type
from minijax.gpu.vector_threads import is_computed
from minijax.kernels.parts import AXES

SHARED = 2**15  # bytes for the tiles of a block


@dataclass(frozen=True)
class TileShape:
    """Blocks that do tiles of two axes.

    Attributes:
      outer: axes, all that there are.
      across: the axis along which stores are neighbours.
      down: the axis along which some loads are.
    """

    outer: tuple
    across: int
    down: int
    team, teams, threads = 1, 256, 256

    def counts(self, kernel):
        """Return how many tiles, or single indices, there are along each axis."""
        tiled = self.across, self.down
        return [
            math.ceil(size / WARP) if axis in tiled else size
            for axis, size in enumerate(kernel.sizes)
        ]

    def blocks(self, kernel):
        """Return how many blocks it takes, one for each tile."""
        return math.prod(self.counts(kernel))


def turned_loads(kernel, across):
    """Return the loads whose neighbours along an axis are no neighbours in memory."""
    return [
        node
        for node in kernel.nodes
        if node.op == "load"
        and node.detail.place.strides[across]
        and nearest(node.detail.place) != across
    ]


def nearest(place):
    """Return the axis along which a place moves by the shortest step, or None."""
    return min(place.axes, key=lambda axis: abs(place.strides[axis]), default=None)


@contextmanager
def sweep(f, slow, fast):
    """Write the loop in which a block walks through its tile, row by row."""
    names, sizes = [AXES[axis] for axis in (slow, fast)], f.kernel.sizes
    with f.block(f"for (int row = threadIdx.x / {WARP}; row < {WARP}; row += 8)"):
        for name, more in zip(names, ("row", "lane")):
            f.line(f"const {f.index} {name} = {name}_first + {more};")
        inside = f"{names[0]} < {sizes[slow]} && {names[1]} < {sizes[fast]}"
        with f.block(f"if ({inside})"):
            yield


def write_corner(f):
    """Write where in its row of the tile a thread is, and where the tile begins."""
    f.line(f"const int lane = threadIdx.x % {WARP};")
    rest, counts = "blockIdx.x", f.launch.counts(f.kernel)
    for axis in reversed(f.launch.outer):
        name, tiled = AXES[axis], axis in (f.launch.across, f.launch.down)
        value = f"{rest} % {counts[axis]}" if axis else rest
        many = f"({value}) * {WARP}" if tiled else value
        f.line(f"const {f.index} {name}{'_first' * tiled} = {many};")
        rest = f"({rest} / {counts[axis]})"


def tiles_of(kernel, least=WARP // 2):
    """Return the `TileShape` of a kernel, or None if no load of it is turned around.

    Args:
      kernel: a `Kernel`.
      least: how long both axes of a tile have to be.
    """
    outer = outer_axes(kernel)
    if len(outer) < max(2, len(kernel.sizes)) or any(map(is_computed, kernel.stores)):
        return None
    [across, *more] = {nearest(store.place) for store in kernel.stores}
    turned = turned_loads(kernel, across)
    downs = {nearest(node.detail.place) for node in turned}
    room = sum(WARP * (WARP + 1) * node.dtype.itemsize for node in turned)
    if more or len(downs) != 1 or any(node.args for node in turned) or room > SHARED:
        return None
    [down] = downs
    big = min(kernel.sizes[across], kernel.sizes[down]) >= least
    return TileShape(outer, across, down) if big else None


def write_tiles(f):
    """Write what a block does: load tiles as they lie, wait, compute from them."""
    across, down = f.launch.across, f.launch.down
    write_corner(f)
    tiles = {node: f.name("tile") for node in turned_loads(f.kernel, across)}
    for node, tile in tiles.items():
        f.line(f"__shared__ {c_type(node.dtype)} {tile}[{WARP}][{WARP + 1}];")
    with sweep(f, across, down):
        for node, tile in tiles.items():
            f.line(f"{tile}[row][lane] = {load_text(f, node.detail, [])};")
    f.line("__syncthreads();")
    with sweep(f, down, across):
        f.names.update({node: f"{tile}[lane][row]" for node, tile in tiles.items()})
        for node in f.kernel.nodes:
            if node not in tiles:
                write_node(f, node)
        for store in f.kernel.stores:
            write_store(f, store)


writers[TileShape] = write_tiles
