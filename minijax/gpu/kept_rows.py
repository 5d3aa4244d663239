"""Rows in registers: a team loads its row once, and walks through it several times."""

# Made from chapters/34_gpu_rest.md by `make chapter`;
# edit the chapter, not this file.

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from minijax.gpu.choices import shape_of
from minijax.gpu.cuda_text import WARP, write_node, write_steps, write_together, writers
from minijax.gpu.launches import is_shareable, outer_axes
from minijax.gpu.lines import write_combine, write_indices, write_store
from minijax.gpu.operations import c_type, to_memory
from minijax.gpu.vector_threads import (
    BYTES,
    in_vectors,
    is_computed,
    load_vector,
    loads_of,
    new_vector,
    vector_at,
    write_lane,
)
from minijax.kernels.kernel import Node, needed
from minijax.kernels.loop_nests import loop_nest
from minijax.kernels.parts import AXES, Combine, Loop, Store, elements
from minijax.kernels.scalar_ops import scalar_ops

MOST_WORDS = 32  # registers of a thread for what it keeps
MOST_THREADS = 1024  # of a block
MANY_ROWS = 1024  # which fill a card with threads that keep 16 numbers each


@dataclass(frozen=True)
class RowShape:
    """Teams of threads that keep a row each.

    Attributes:
      outer: axes, all but the last one.
      team: how many threads there are in a team.
      teams: how many teams there are in a block.
      lanes: how many neighbours a thread loads at once.
      turns: how often it does.
    """

    outer: tuple
    team: int
    teams: int
    lanes: int
    turns: int
    across = False

    @property
    def threads(self):
        """How many threads there are in a block."""
        return self.team * self.teams

    def blocks(self, kernel):
        """Return how many blocks it takes; the last one may have teams without work."""
        return -(-elements(kernel, self.outer) // self.teams)


def loops_of(kernel, outer):
    """Return the loops along the last axis inside of others; () if there are more."""
    last, steps = len(kernel.sizes) - 1, loop_nest(kernel, outer)
    loops = [step for step in steps if isinstance(step, Loop)]
    inner = [step for loop in loops for step in loop.body if isinstance(step, Loop)]
    return loops if not inner and all(loop.axis == last for loop in loops) else ()


def is_worth_keeping(node):
    """Return whether a node takes a load, or many instructions."""
    if node.op not in scalar_ops:
        return node.op == "load"
    return node.op == "div" or scalar_ops[node.op].cost == "transcendentals"


def pruned(body, kept):
    """Return the steps of a loop without nodes that are kept, or lead to these only."""
    goals = [step for step in body if not isinstance(step, Node)]
    wanted = [x for g in goals for x in (g.fold if isinstance(g, Combine) else g).args]
    used = needed(wanted, kept).difference(kept)
    return [step for step in body if not isinstance(step, Node) or step in used]


def kept_nodes(loops):
    """Return the nodes that several loops need and that are worth registers."""
    seen, found = set(), []
    for loop in loops:
        nodes = [x for x in pruned(loop.body, found) if isinstance(x, Node)]
        while again := [x for x in nodes if x in seen and is_worth_keeping(x)]:
            found.append(again[-1])  # the last one: what leads to it is not needed now
            nodes = [x for x in pruned(loop.body, found) if isinstance(x, Node)]
        seen.update(nodes)
    return found


def lanes_of(kernel, unaligned):
    """Return how many neighbours of a row a thread may load at once, 1 at least."""
    found = [*loads_of(kernel), *kernel.stores]
    moving = [each for each in found if each.place.strides[-1]]
    widest = max([each.parameter.dtype.itemsize for each in moving], default=BYTES)
    known = not any(each.parameter.name in unaligned for each in moving)
    if not known or any(map(is_computed, found)):
        return 1
    lanes = BYTES // widest
    fits = all(in_vectors(each.place, lanes) for each in moving)
    return lanes if fits and kernel.sizes[-1] % lanes == 0 else 1


def rows_of(kernel, unaligned=()):
    """Return the `RowShape` of a kernel, or None if it walks through no row again.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    outer = tuple(range(len(kernel.sizes) - 1))
    alone = outer_axes(kernel) == outer and is_shareable(kernel)
    if not kernel.sizes or not alone or any(store.update for store in kernel.stores):
        return None
    kept = kept_nodes(loops_of(kernel, outer))
    words = sum(max(1, node.dtype.itemsize // 4) for node in kept)
    size, lanes = kernel.sizes[-1], lanes_of(kernel, unaligned)
    if not kept or size < WARP:
        return None
    while lanes > 1 and words * lanes > MOST_WORDS:
        lanes //= 2
    most = MOST_WORDS // (words * lanes)
    usual = 16 if elements(kernel, outer) >= MANY_ROWS else 4
    turns = min(max(1, usual // lanes), max(1, most))
    turns = max(turns, -(-size // (MOST_THREADS * lanes)))
    team = WARP * -(-size // (WARP * lanes * turns))
    turns, teams = -(-size // (team * lanes)), 8 if team == WARP else 1
    return RowShape(outer, team, teams, lanes, turns) if turns <= most else None


def shape_on_card(kernel, unaligned=()):
    """Return the shape of launch that suits a kernel, of all that there are."""
    return rows_of(kernel, unaligned) or shape_of(kernel, unaligned)


@contextmanager
def turns_of(f):
    """Open the loop in which a thread comes to its parts of the row."""
    shape, size, axis = f.launch, f.kernel.sizes[-1], AXES[len(f.kernel.sizes) - 1]
    step = shape.team * shape.lanes
    tests = [f"{axis} < {size}"] * (step * shape.turns > size) + ["busy"] * f.idle
    f.line("#pragma unroll")
    with f.block(f"for (int u = 0; u < {shape.turns}; u++)"):
        first = f"t * {shape.lanes}" if shape.lanes > 1 else "t"
        f.line(f"const {f.index} {axis} = u * {step} + {first};")
        with f.block(f"if ({' && '.join(tests)})") if tests else nullcontext():
            yield


def lanes_loop(f):
    """Open the loop over the neighbours that a thread has at once."""
    if f.launch.lanes == 1:
        return nullcontext()
    f.line("#pragma unroll")
    return f.block(f"for (int c = 0; c < {f.launch.lanes}; c++)")


def write_arrays(f, kept):
    """Write the arrays of what is kept; return what stands for an element of each."""
    lanes, found = f.launch.lanes, {}
    for node in kept:
        name = f.name("k")
        f.line(f"{c_type(node.dtype)} {name}[{f.launch.turns * lanes}];")
        found[node] = f"{name}[u * {lanes} + c]" if lanes > 1 else f"{name}[u]"
    return found


def write_lane_step(f, step, vectors, arrays):
    """Write a step for one number of a row, and keep what is to be kept."""
    last, wide = AXES[len(f.kernel.sizes) - 1], f.launch.lanes > 1
    if isinstance(step, Combine):
        place = f"({last} + c)" if wide else last
        write_combine(f, step.fold, f.names[step.fold.args[0]], place)
    elif isinstance(step, Node):
        write_lane(f, step, vectors.get(step)) if wide else write_node(f, step)
        if step in arrays:
            f.line(f"{arrays[step]} = {f.names[step]};")
    elif wide:
        value = to_memory(step.parameter.dtype, f.names[step.node])
        f.line(f"{vectors[step]}.at[c] = {value};")
    else:
        write_store(f, step)


def write_part(f, steps, arrays):
    """Write what a thread does with neighbours: load, compute each number, store."""
    wide, vectors = f.launch.lanes > 1, {}
    for step in steps if wide else ():
        if isinstance(step, Node) and step.op == "load":
            vectors[step] = load_vector(f, step.detail)
    stores = [step for step in steps if wide and isinstance(step, Store)]
    made = {store: new_vector(f, store.parameter) for store in stores}
    with lanes_loop(f):
        for step in steps:
            write_lane_step(f, step, vectors | made, arrays)
    for store in stores:
        f.line(f"{vector_at(f, store)} = {made[store]};")


def write_walk(f, steps, arrays, there=()):
    """Write one walk of a team through its row, where some of it is kept already."""
    names = f.names
    f.names, f.inside = names | {node: arrays[node] for node in there}, True
    with turns_of(f):
        write_part(f, steps, arrays)
    f.names, f.inside = names, False


def write_kept_rows(f):
    """Write what the threads of a `RowShape` do: load what is kept, then walk."""
    write_indices(f)
    steps = loop_nest(f.kernel, f.launch.outer)
    kept = kept_nodes([step for step in steps if isinstance(step, Loop)])
    arrays = write_arrays(f, kept)
    there = [node for node in kept if node.op == "load" and not node.args]
    if there:
        write_walk(f, there, arrays)
    for step in steps:
        if not isinstance(step, Loop):
            write_steps(f, [step])
            continue
        write_walk(f, pruned(step.body, there), arrays, there)
        there += [node for node in kept if node in step.body and node not in there]
        for fold in step.folds:
            write_together(f, fold)


writers[RowShape] = write_kept_rows
