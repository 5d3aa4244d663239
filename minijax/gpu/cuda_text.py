# Made from chapters/34_gpu.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions in CUDA C: any nest, whatever its launch says."""

import itertools
from contextlib import contextmanager

from minijax.gpu.launches import LaunchShape
from minijax.gpu.operations import (
    c_number,
    c_type,
    c_type_in_memory,
    expression,
    from_memory,
    to_memory,
)
from minijax.kernels.kernel import Node
from minijax.kernels.loop_nests import loop_nest
from minijax.kernels.parts import AXES, Loop, Start, Store, elements
from minijax.kernels.scalar_ops import foldings

WARP = 32  # threads


class CudaFunction:
    """The text of a kernel's function, in the making.

    Args:
      kernel: a `Kernel`.
      launch: a `LaunchShape`.

    Attributes:
      lines: what is written.
      names: what the result of each node is called.
      index: the type of indices.
      inside: whether we are in a loop that a team shares.
      idle: whether some teams of several threads have no index.
    """

    def __init__(self, kernel, launch):
        self.kernel, self.launch = kernel, launch
        self.lines, self.names = [], {}
        self._depth, self._numbers = 1, itertools.count()
        self.index, self.inside = index_type(kernel), False
        rest = elements(kernel, launch.outer) % launch.teams
        self.idle = launch.team > 1 and rest > 0

    def line(self, text):
        """Write a line."""
        self.lines.append("  " * self._depth + text)

    def name(self, letter):
        """Return a new name."""
        return f"{letter}{next(self._numbers)}"

    @contextmanager
    def block(self, head):
        """Write a head; what is written meanwhile stands in braces behind it."""
        self.line(head + " {")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")


def index_type(kernel):
    """Return the type in C of places: of 32 bits, where they reach."""
    sizes = [x.size * x.dtype.itemsize for x in kernel.parameters]
    most = max([*sizes, elements(kernel, range(len(kernel.sizes)))])
    return "int" if most < 2**31 else "long long"


def place_text(f, place, numbers=(), terms=()):
    """Return the expression of a place; `numbers` are those of its computed terms."""
    parts = [(AXES[axis], place.strides[axis]) for axis in place.axes]
    parts += [(f"({f.index}){x}", t.stride) for x, t in zip(numbers, terms)]
    texts = [x if factor == 1 else f"{x}*{factor}" for x, factor in parts]
    if place.offset or not texts:
        texts.append(str(place.offset))
    return " + ".join(texts)


def inside_text(f, guards, numbers, terms):
    """Return the condition under which a place is inside of its limits, or nothing."""
    met = [(place_text(f, guard.place), guard.limit) for guard in guards]
    met += [(x, term.limit) for x, term in zip(numbers, terms)]
    return " && ".join(f"{x} >= 0 && {x} < {limit}" for x, limit in met)


def load_text(f, detail, numbers):
    """Return the expression of an element, or of what stands for it outside."""
    parameter, place, guards, other, terms = detail
    if parameter.size == 0:
        return c_number(other)
    element = f"{parameter.name}[{place_text(f, place, numbers, terms)}]"
    number = from_memory(parameter.dtype, element)
    inside = inside_text(f, guards, numbers, terms)
    return f"{inside} ? {number} : {c_number(other)}" if inside else number


def write_node(f, node):
    """Write the line of a node, or remember the number that a constant is."""
    if node.op == "constant":
        f.names[node] = c_number(node.detail)
        return
    args = [f.names[arg] for arg in node.args]
    if node.op == "index":
        value = AXES[node.detail]
    elif node.op == "load":
        value = load_text(f, node.detail, args)
    else:
        value = expression(node.op, args, node.args[-1].dtype, node.dtype)
    f.names[node] = f.name("v")
    f.line(f"const {c_type(node.dtype)} {f.names[node]} = {value};")


def write_store(f, store):
    """Write what a store does to its element."""
    parameter, place, node, update = store
    value, numbers, terms = f.names[node], [], ()
    if update:
        numbers, terms = [f.names[x] for x in update.at], update.terms
    element = f"{parameter.name}[{place_text(f, place, numbers, terms)}]"
    if update and update.how != "set":
        args = [f"({from_memory(parameter.dtype, element)})", value]
        value = f"({expression(update.how, args, node.dtype, node.dtype)})"
    inside = inside_text(f, (), numbers, terms)
    head = f"if ({inside}) " if inside else ""
    f.line(f"{head}{element} = {to_memory(parameter.dtype, value)};")


def write_steps(f, steps):
    """Write steps of a nest."""
    for step in steps:
        if isinstance(step, Node):
            write_node(f, step)
        elif isinstance(step, Store):
            write_once(f, step)
        elif isinstance(step, Loop):
            write_loop(f, step)
        elif isinstance(step, Start):
            write_start(f, step.fold)
        else:
            fold = step.fold
            write_combine(f, fold, f.names[fold.args[0]], AXES[fold.detail.axes[0]])


def write_start(f, fold):
    """Declare the running value of a fold, and for an argmax the place of it."""
    arg, how, sizes = fold.args[0], fold.detail.how, f.kernel.sizes
    name = f.names[fold] = f.name("v")
    value = f"{name}_best" if is_place(fold) else name
    first = c_number(foldings[how].start(arg.dtype))
    f.line(f"{c_type(arg.dtype)} {value} = {first};")
    if is_place(fold):  # behind the last place, where several threads look for it
        place = sizes[fold.detail.axes[0]] if f.launch.team > 1 else 0
        f.line(f"long long {name} = {place};")


def is_place(fold):
    """Return whether a fold looks for a place."""
    return fold.detail.how.startswith("arg")


def write_combine(f, fold, x, place):
    """Write how a number at a place enters the running value of a fold."""
    name, how = f.names[fold], fold.detail.how
    if not is_place(fold):
        f.line(f"{name} = {expression(how, [name, x], fold.dtype, fold.dtype)};")
        return
    best, ahead = f"{name}_best", ">" if how == "argmax" else "<"
    wins = f"{x} {ahead} {best} || ({x} == {best} && {place} < {name})"
    if fold.args[0].dtype.kind == "f":  # the first NaN wins
        first = f"{best} == {best} || {place} < {name}"
        wins = f"{x} != {x} ? {first} : {best} == {best} && ({wins})"
    f.line(f"if ({wins}) {{ {best} = {x}; {name} = {place}; }}")


def write_loop(f, loop):
    """Write a loop; if a team shares it, each thread has its folds afterwards."""
    axis, size = AXES[loop.axis], f.kernel.sizes[loop.axis]
    first = "t" if loop.team else "0"
    more = " && busy" if loop.team and f.idle else ""
    head = f"for ({f.index} {axis} = {first}; {axis} < {size}{more}; "
    names, f.inside = f.names, f.inside or loop.team > 0
    f.names = dict(names)
    with f.block(f"{head}{axis} += {loop.team or 1})"):
        write_steps(f, loop.body)
    f.names = names
    if loop.team:
        f.inside = False
        for fold in loop.folds:
            write_together(f, fold)


def write_once(f, store):
    """Write a store; outside of shared loops one thread of the team does it."""
    if f.launch.team == 1 or f.inside:
        write_store(f, store)
        return
    if is_loaded(f.kernel, store.parameter):  # wait until all threads have read it
        f.line("__syncthreads();")
    with f.block("if (t == 0 && busy)" if f.idle else "if (t == 0)"):
        write_store(f, store)


def write_indices(f):
    """Write which thread of which team this is, and the outer indices of the team."""
    kernel, outer, team, teams = f.kernel, f.launch.outer, f.launch.team, f.launch.teams
    across = f.launch.across
    total, side = elements(kernel, outer), teams if across else team
    wide = "(long long)" if f.index != "int" else ""
    mine, who = ("/", "%") if across else ("%", "/")
    if team > 1:
        f.line(f"const int t = threadIdx.x {mine} {side};")
    which = f"threadIdx.x {who} {side}" if team > 1 else "threadIdx.x"
    number = f"{wide}blockIdx.x * {teams} + {which}"
    f.line(f"const {f.index} team = {number};")
    if team == 1:
        f.line(f"if (team >= {total}) return;")
    elif f.idle:
        f.line(f"const bool busy = team < {total};")
    rest = f"(busy ? team : {total - 1})" if f.idle else "team"
    for place, axis in reversed([*enumerate(outer)]):
        size = kernel.sizes[axis]
        value = f"{rest} % {size}" if place else rest
        f.line(f"const {f.index} {AXES[axis]} = {value};")
        rest = f"({rest} / {size})"


def shared_nest(kernel, launch):
    """Return the steps inside of the outer loops; teams share the loops among them."""
    team = launch.team if launch.team > 1 else 0
    steps = loop_nest(kernel, launch.outer)
    return [x._replace(team=team) if isinstance(x, Loop) else x for x in steps]


def write_teams(f):
    """Write what the threads of a `LaunchShape` do."""
    write_indices(f)
    write_steps(f, shared_nest(f.kernel, f.launch))


# From types of launches to functions that write what their threads do.
writers: dict = {LaunchShape: write_teams}


def cuda_function(kernel, launch, name):
    """Return the text of a kernel's function for a launch."""
    f = CudaFunction(kernel, launch)
    writers[type(launch)](f)
    stored = [store.parameter for store in kernel.stores]
    changed = [store.parameter for store in kernel.stores if store.update]
    parameters = [
        _parameter(x, x in stored, x in changed or is_loaded(kernel, x))
        for x in kernel.parameters
    ]
    head = f'extern "C" __global__ void __launch_bounds__({launch.threads})'
    texts = f"{name}({parameters[0]}", *[f"    {each}" for each in parameters[1:]]
    return "\n".join([head, ",\n".join(texts) + ") {", *f.lines, "}"])


def is_loaded(kernel, parameter):
    """Return whether a kernel loads elements of a parameter."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    return any(load.parameter == parameter for load in loads)


def _parameter(parameter, stored, loaded):
    kind = c_type_in_memory(parameter.dtype)
    alone = "" if stored and loaded else " __restrict__"
    return f"{'' if stored else 'const '}{kind}*{alone} {parameter.name}"


def write_together(f, fold):
    """Put the parts together that the threads of a team have; each gets the whole."""
    if not f.launch.across:
        write_shuffles(f, fold)
    if f.launch.across or f.launch.team > WARP:
        write_exchange(f, fold)


def parts_of(f, fold):
    """Return the names of what a thread has of a fold, and their types."""
    name = f.names[fold]
    if is_place(fold):
        return {f"{name}_best": c_type(fold.args[0].dtype), name: "long long"}
    return {name: c_type(fold.dtype)}


def write_other(f, fold, others):
    """Write how what another thread has enters a fold: expressions of its parts."""
    for (part, kind), other in zip(parts_of(f, fold).items(), others):
        f.line(f"const {kind} {part}_other = {other};")
    first, *_, last = [f"{part}_other" for part in parts_of(f, fold)] * 2
    write_combine(f, fold, first, last)


def write_shuffles(f, fold):
    """Fold what the threads of each warp have."""
    parts = parts_of(f, fold)
    with f.block("for (int d = 16; d; d /= 2)"):
        write_other(f, fold, [f"__shfl_xor_sync(~0u, {x}, d)" for x in parts])


def write_exchange(f, fold):
    """Fold through shared memory what warps have, or rows of threads, if across."""
    team, across = f.launch.team, f.launch.across
    count, row, mine, lane = team // WARP, "", "t / 32", ""
    if across:
        count, row, mine = team, f"[{f.launch.teams}]", "t"
        lane = f"[threadIdx.x % {f.launch.teams}]"
    shared = {part: f.name("shared") for part in parts_of(f, fold)}
    for part, kind in parts_of(f, fold).items():
        f.line(f"__shared__ {kind} {shared[part]}[{count}]{row};")
        who = "" if across else "if (t % 32 == 0) "
        f.line(f"{who}{shared[part]}[{mine}]{lane} = {part};")
    f.line("__syncthreads();")
    for part, place in shared.items():
        f.line(f"{part} = {place}[0]{lane};")
    with f.block(f"for (int w = 1; w < {count}; w++)"):
        write_other(f, fold, [f"{place}[w]{lane}" for place in shared.values()])
