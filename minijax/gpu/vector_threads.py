"""A thread for some neighbours: one vector of 16 bytes, or fewer, of each array."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from dataclasses import dataclass

from minijax.gpu.cuda_text import write_node, write_steps, writers
from minijax.gpu.launches import outer_axes
from minijax.gpu.lines import place_text
from minijax.gpu.operations import c_type_in_memory, from_memory, to_memory
from minijax.kernels.loop_nests import loop_nest
from minijax.kernels.parts import AXES

BYTES = 16  # that one instruction of a thread loads or stores, at most


@dataclass(frozen=True)
class VectorShape:
    """Threads that do some neighbours along the last axis each.

    Attributes:
      outer: axes, all that there are.
      lanes: how many neighbours.
      threads: how many threads there are in a block.
    """

    outer: tuple
    lanes: int
    threads: int = 256
    team, across = 1, False

    @property
    def teams(self):
        """How many threads there are in a block, each of which is a team."""
        return self.threads

    def runs(self, kernel):
        """Return how many runs there are; the last of a row may be shorter."""
        *before, last = [kernel.sizes[axis] for axis in self.outer]
        return math.prod(before) * math.ceil(last / self.lanes)

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have idle threads."""
        return math.ceil(self.runs(kernel) / self.threads)


def loads_of(kernel):
    """Return what a kernel loads, a list of `Load`."""
    return [node.detail for node in kernel.nodes if node.op == "load"]


def is_computed(each):
    """Return whether a `Load` or a `Store` has computed places, or guards."""
    kinds = "update", "terms", "guards"
    return any(getattr(each, kind, None) for kind in kinds)


def in_vectors(place, lanes):
    """Return whether vectors of so many lanes begin at multiples of their size."""
    *others, last = place.strides
    return last == 1 and all(x % lanes == 0 for x in [place.offset, *others])


def write_run(f):
    """Write the indices with which the run of a thread begins."""
    shape, sizes = f.launch, f.kernel.sizes
    wide = "(long long)" if f.index != "int" else ""
    f.line(f"const {f.index} run = {wide}blockIdx.x * {shape.threads} + threadIdx.x;")
    f.line(f"if (run >= {shape.runs(f.kernel)}) return;")
    runs = math.ceil(sizes[-1] / shape.lanes)
    first = f"run % {runs}" if len(sizes) > 1 else "run"
    f.line(f"{f.index} {AXES[len(sizes) - 1]} = {shape.lanes} * ({first});")
    rest = f"run / {runs}"
    for axis in reversed(range(len(sizes) - 1)):
        value = f"({rest}) % {sizes[axis]}" if axis else rest
        f.line(f"const {f.index} {AXES[axis]} = {value};")
        rest = f"{rest} / {sizes[axis]}"


def vector_at(f, each, const=""):
    """Return the expression of the vector at the place of a load or a store."""
    kind = f"Vector<{c_type_in_memory(each.parameter.dtype)}, {f.launch.lanes}>"
    place = place_text(f, each.place)
    return f"*reinterpret_cast<{const}{kind}*>({each.parameter.name} + {place})"


def new_vector(f, parameter, value=""):
    """Write the line of a new variable for a vector; return its name."""
    name, kind = f.name("a"), c_type_in_memory(parameter.dtype)
    f.line(f"Vector<{kind}, {f.launch.lanes}> {name}{value};")
    return name


def load_vector(f, load):
    """Write the line that loads a vector; return its name."""
    return new_vector(f, load.parameter, f" = {vector_at(f, load, 'const ')}")


def write_lane(f, node, vector):
    """Write the line of a node for one number of a run."""
    if vector:
        f.names[node] = from_memory(node.detail.parameter.dtype, f"{vector}.at[c]")
    elif node.op == "index":
        f.names[node] = f"((long long){AXES[node.detail]} + c)"
    else:
        write_node(f, node)


def vectors_of(kernel, unaligned=()):
    """Return the `VectorShape` of a kernel, or None if vectors do not suit it.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    outer = outer_axes(kernel)
    if not outer or len(outer) < len(kernel.sizes):
        return None
    found = [*loads_of(kernel), *kernel.stores]
    moving = [each for each in found if each.place.strides[-1]]
    if not moving or any(map(is_computed, found)):
        return None
    widest = max(each.parameter.dtype.itemsize for each in moving)
    lanes = BYTES // widest
    fits = all(in_vectors(each.place, lanes) for each in moving)
    known = not any(each.parameter.name in unaligned for each in moving)
    wide = lanes > 1 and kernel.sizes[-1] >= lanes
    return VectorShape(outer, lanes) if wide and fits and known else None


def write_run_in_vectors(f):
    """Write one run: load vectors, compute each number, store vectors."""
    kernel, lanes = f.kernel, f.launch.lanes
    last = len(kernel.sizes) - 1
    still = [node for node in kernel.nodes if last not in node.level]
    moving = [node for node in kernel.nodes if last in node.level]
    loads = [node for node in moving if node.op == "load"]
    for node in still:
        write_node(f, node)
    at = {node: load_vector(f, node.detail) for node in loads}
    made = {store: new_vector(f, store.parameter) for store in kernel.stores}
    f.line("#pragma unroll")
    with f.block(f"for (int c = 0; c < {lanes}; c++)"):
        for node in moving:
            write_lane(f, node, at.get(node))
        for store, name in made.items():
            value = to_memory(store.parameter.dtype, f.names[store.node])
            f.line(f"{name}.at[c] = {value};")
    for store, name in made.items():
        f.line(f"{vector_at(f, store)} = {name};")


def write_vectors(f):
    """Write what a thread does with its neighbours; a shorter run has a loop."""
    kernel, shape = f.kernel, f.launch
    axis, size = AXES[shape.outer[-1]], kernel.sizes[-1]
    write_run(f)
    if size % shape.lanes == 0:
        write_run_in_vectors(f)
        return
    with f.block(f"if ({axis} <= {size - shape.lanes})"):
        write_run_in_vectors(f)
    f.names = {}
    with f.block(f"else for (; {axis} < {size}; {axis}++)"):
        write_steps(f, loop_nest(kernel, shape.outer))


writers[VectorShape] = write_vectors
