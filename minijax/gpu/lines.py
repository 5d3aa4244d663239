"""Lines of CUDA C: places, loads and stores, folds, and what a function begins with."""

# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from contextlib import contextmanager

from minijax.gpu.operations import (
    c_number,
    c_type,
    c_type_in_memory,
    expression,
    from_memory,
    to_memory,
)
from minijax.kernels.parts import AXES, elements
from minijax.kernels.scalar_ops import foldings


def index_type(kernel):
    """Return the type in C of places: of 32 bits, where they reach."""
    sizes = [x.size * x.dtype.itemsize for x in kernel.parameters]
    most = max([*sizes, elements(kernel, range(len(kernel.sizes)))])
    return "int" if most < 2**31 else "long long"


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


def parts_of(f, fold):
    """Return the names of what a thread has of a fold, and their types."""
    name = f.names[fold]
    if is_place(fold):
        return {f"{name}_best": c_type(fold.args[0].dtype), name: "long long"}
    return {name: c_type(fold.dtype)}


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


def is_loaded(kernel, parameter):
    """Return whether a kernel loads elements of a parameter."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    return any(load.parameter == parameter for load in loads)


def parameter_texts(kernel):
    """Return the parameters of a kernel's function, as C declares them, a list."""
    stored = [store.parameter for store in kernel.stores]
    changed = [store.parameter for store in kernel.stores if store.update]
    return [
        _parameter(x, x in stored, x in changed or is_loaded(kernel, x))
        for x in kernel.parameters
    ]


def _parameter(parameter, stored, loaded):
    kind = c_type_in_memory(parameter.dtype)
    alone = "" if stored and loaded else " __restrict__"
    return f"{'' if stored else 'const '}{kind}*{alone} {parameter.name}"
