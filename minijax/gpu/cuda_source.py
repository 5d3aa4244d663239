"""CUDA C: scalar operations, loads, stores, folds, and kernels in two stages.

Reference: the CUDA C++ Programming Guide, https://docs.nvidia.com/cuda.
"""

# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math
from contextlib import contextmanager

import numpy as np

from minijax.kernels.builder import Buffer
from minijax.kernels.ir import (
    AXIS_NAMES,
    NUMPY_MATH,
    Affine,
    Parameter,
    Store,
    compute_dtype,
    fold_ops,
    is_affine,
    scalar_ops,
    trip_count,
)
from minijax.kernels.loop_nests import backward_slice, load_node
from minijax.kernels.lowering import Launch
from minijax.threads.split_reductions import (
    nodes_after_folds,
    row_strides,
    stage_kernel,
)

# Scalar operations in CUDA C: expressions of names, by kinds of dtypes.

# From names in `scalar_ops` to expressions by the kind of dtype: b(ool), i(nteger),
# u(nsigned), f(loat).
expressions: dict = {}

_C_TYPES = {
    "b1": "bool", "i1": "signed char", "i2": "short", "i4": "int", "i8": "long long",
    "u1": "unsigned char", "u2": "unsigned short", "u4": "unsigned",
    "u8": "unsigned long long", "f4": "float", "f8": "double",
}  # fmt: skip


def express(name, **templates):
    """Say what an operation is in C, by letters of kinds, such as ``iu="..."``.

    In a template ``{x}``, ``{y}`` and ``{z}`` are the operands, ``{t}`` is their type,
    ``{u}`` an unsigned one as wide as an int or wider, in which sums wrap, ``{m}`` what
    ends the names of functions, ``{bits}`` the size of the type and ``{ones}`` a mask.
    """
    expressions[name] = {k: text for kinds, text in templates.items() for k in kinds}


for _op, _sign in {"add": "+", "sub": "-", "mul": "*"}.items():
    _wrapped = f"({{t}})(({{u}}){{x}} {_sign} ({{u}}){{y}})"
    express(_op, f=f"{{x}} {_sign} {{y}}", iu=_wrapped)
for _op, _sign in {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}.items():  # fmt: skip
    express(_op, biuf=f"{{x}} {_sign} {{y}}")
for _op, _sign in {"and": "&", "or": "|", "xor": "^"}.items():
    express(_op, b=f"(bool)({{x}} {_sign} {{y}})", iu=f"({{t}})({{x}} {_sign} {{y}})")
express("div", iu="({t})({x} / {y})", f="{x} / {y}")
express("rem", iu="({t})({x} % {y})", f="fmod{m}({x}, {y})")
express("select", biuf="{x} ? {y} : {z}")
express("max", f="{x} != {x} || {x} > {y} ? {x} : {y}", biu="{x} > {y} ? {x} : {y}")
express("min", f="{x} != {x} || {x} < {y} ? {x} : {y}", biu="{x} < {y} ? {x} : {y}")
express("neg", f="-{x}", iu="({t})(0 - ({u}){x})")
express("abs", f="fabs{m}({x})", i="{x} < 0 ? ({t})(0 - ({u}){x}) : {x}")
express("not", b="!{x}", iu="({t})~{x}")
express("shift_left", iu="({t})(({u}){x} << {y})")
express("shift_right", iu="({t})({x} >> {y})")
express("population_count", iu="({t})__popcll({x} & {ones})")
express("clz", iu="({t})(__clzll({x} & {ones}) - (64 - {bits}))")
express("copysign", f="copysign{m}({x}, {y})")
express("as_float16", f="({t})from_f16(to_f16((float){x}))")
express("fma", f="fma{m}({x}, {y}, {z})")  # of `functions.scalar_functions`
for _op in ("floor", "ceil", "trunc", "rint", "sqrt"):
    express(_op, f=f"{_op}{{m}}({{x}})")
for _op in NUMPY_MATH:
    _operands = ", ".join(["{x}", "{y}"][: scalar_ops[_op].arity])
    express(_op, f=f"{_op}{{m}}({_operands})")


# Limits of integers, patterns of bits of narrow floats, and several numbers that are
# loaded and stored as one, which C has no words for.
PRELUDE = """\
template <class T, int count>
struct alignas(sizeof(T) * count) Vector {
  T at[count];
};
template <class R, class F>
__device__ __forceinline__ R saturated(F x, R least, R most) {
  return x != x ? (R)0 : x <= (F)least ? least : x >= (F)most ? most : (R)x;
}
__device__ __forceinline__ float from_bf16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}
__device__ __forceinline__ unsigned short to_bf16(float x) {
  const unsigned b = __float_as_uint(x);
  return x != x ? b >> 16 | 64 : (b + (b >> 16 & 1) + 32767) >> 16;
}
__device__ __forceinline__ float from_f16(unsigned short x) {
  const unsigned rest = x & 32767u, bits = rest << 13;
  const float usual = __uint_as_float(bits) * 0x1p112f;
  const unsigned size = rest >= 31744u ? bits | 0x7f800000u : __float_as_uint(usual);
  return __uint_as_float(size | (x & 32768u) << 16);
}
__device__ __forceinline__ unsigned short to_f16(float x) {
  const unsigned all = __float_as_uint(x), bits = all & 0x7fffffffu;
  const unsigned tiny = __float_as_uint(__uint_as_float(bits) + .5f) - 0x3f000000u;
  const unsigned usual = (bits + (bits >> 13 & 1) + 3355447295u) >> 13;
  const unsigned size = bits > 0x7f800000u    ? 32256u
                        : bits >= 0x477ff000u ? 31744u
                        : bits < 0x38800000u  ? tiny
                                              : usual;
  return size | (all >> 16 & 32768u);
}
"""


def c_type(dtype):
    """Return the type of a number in registers."""
    return _C_TYPES[f"{dtype.kind}{dtype.itemsize}"]


def c_type_in_memory(dtype):
    """Return the type of an element in memory: bytes of 0 or 1, patterns of bits."""
    if dtype.kind == "b":
        return "unsigned char"
    return "unsigned short" if dtype != compute_dtype(dtype) else c_type(dtype)


def load_conversion_expr(dtype, element):
    """Return the expression of the number that an element of a parameter is."""
    if dtype.kind == "b":
        return f"({element} != 0)"
    if dtype == compute_dtype(dtype):
        return element
    return f"from_{_half(dtype)}({element})"


def store_conversion_expr(dtype, number):
    """Return the expression of the element that holds a number."""
    return number if dtype == compute_dtype(dtype) else f"to_{_half(dtype)}({number})"


def _half(dtype):
    return "f16" if dtype == np.float16 else "bf16"


def c_literal(x):
    """Return a NumPy scalar as C writes it."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind == "b":
        return "true" if x else "false"
    if kind != "f":
        ends = {"i8": "LL", "u4": "u", "u8": "ULL"}.get(f"{kind}{size}", "")
        least = kind == "i" and size >= 4 and x == np.iinfo(x.dtype).min
        return f"({int(x) + 1}{ends} - 1)" if least else f"({int(x)}{ends})"
    if np.isfinite(x):
        text = f"{x!s}{'f' if size == 4 else ''}"
        return f"({text})" if np.signbit(x) else text
    bits = int(x.view(f"u{size}"))
    wide = f"__longlong_as_double({bits}LL)"
    return f"__uint_as_float({bits}u)" if size == 4 else wide


def c_expression(op, args, dtype, result):
    """Return what an operation is in C.

    Args:
      op: a name in `scalar_ops` or `recastings`.
      args: names of the operands.
      dtype, result: of the last operand and of the result, in registers.

    Raises:
      TypeError: if the operation has no CUDA C for the dtype.
    """
    if op == "convert":
        return _conversion(args[0], dtype, result)
    if op == "bitcast":
        return _same_bits(args[0], dtype, result)
    size = dtype.itemsize
    unsigned = "unsigned long long" if size == 8 else "unsigned"
    types = {"t": c_type(dtype), "u": unsigned, "m": "f" if size == 4 else ""}
    masks = {"bits": 8 * size, "ones": f"{2 ** (8 * size) - 1}ULL"}
    operands = dict(zip("xyz", args))
    template = expressions.get(op, {}).get(dtype.kind)
    if template is None:
        raise TypeError(
            f"The scalar operation {op!r} has no CUDA C for {dtype}. Say what it is: "
            f"minijax.gpu.cuda_source.express({op!r}, {dtype.kind}=...)."
        )
    return template.format(**operands, **types, **masks)


def _conversion(x, dtype, result):
    if result.kind == "b":
        return f"{x} != 0"
    if dtype.kind == "f" and result.kind in "iu":  # stops at the limits; 0 for NaN
        limits = np.iinfo(result)
        least, most = (c_literal(result.type(end)) for end in (limits.min, limits.max))
        return f"saturated<{c_type(result)}, {c_type(dtype)}>({x}, {least}, {most})"
    return f"({c_type(result)}){x}"


def _same_bits(x, dtype, result):
    wide = result.itemsize == 8
    if dtype.kind == "f" and result.kind != "f":
        name = "__double_as_longlong" if wide else "__float_as_uint"
    elif dtype.kind != "f" and result.kind == "f":
        name = "__longlong_as_double" if wide else "__uint_as_float"
    else:
        return f"({c_type(result)}){x}"
    return f"({c_type(result)}){name}({x})"


# Lines of CUDA C: places, loads and stores, folds, and what a function begins with.


def index_type(kernel):
    """Return the type in C of places: of 32 bits, where they reach."""
    sizes = [x.size * x.dtype.itemsize for x in kernel.parameters]
    most = max([*sizes, trip_count(kernel, range(len(kernel.sizes)))])
    return "int" if most < 2**31 else "long long"


class CudaRenderer:
    """The text of a kernel's function, in the making.

    Args:
      kernel: a `Kernel`.
      launch: a `LaunchShape`.

    Attributes:
      lines: what is written.
      names: what the result of each node is called.
      index: the type of indices.
      inside: whether we are in a loop that a team shares.
      inactive_condition: whether some teams of several threads have no index.
    """

    def __init__(self, kernel, launch):
        self.kernel, self.launch = kernel, launch
        self.lines, self.names = [], {}
        self._depth, self._numbers = 1, itertools.count()
        self.index, self.inside = index_type(kernel), False
        rest = trip_count(kernel, launch.outer) % launch.teams
        self.inactive_condition = launch.team > 1 and rest > 0

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


def index_expr(f, place, numbers=(), terms=()):
    """Return the expression of a place; `numbers` are those of its computed terms."""
    parts = [(AXIS_NAMES[axis], place.strides[axis]) for axis in place.axes]
    parts += [(f"({f.index}){x}", t.stride) for x, t in zip(numbers, terms)]
    texts = [x if factor == 1 else f"{x}*{factor}" for x, factor in parts]
    if place.offset or not texts:
        texts.append(str(place.offset))
    return " + ".join(texts)


def inside_text(f, guards, numbers, terms):
    """Return the condition under which a place is inside of its limits, or nothing."""
    met = [(index_expr(f, guard.place), guard.limit) for guard in guards]
    met += [(x, term.limit) for x, term in zip(numbers, terms)]
    return " && ".join(f"{x} >= 0 && {x} < {limit}" for x, limit in met)


def load_expr(f, detail, numbers):
    """Return the expression of an element, or of what stands for it outside."""
    parameter, place, guards, other, terms = detail
    if parameter.size == 0:
        return c_literal(other)
    element = f"{parameter.name}[{index_expr(f, place, numbers, terms)}]"
    number = load_conversion_expr(parameter.dtype, element)
    inside = inside_text(f, guards, numbers, terms)
    return f"{inside} ? {number} : {c_literal(other)}" if inside else number


def render_store(f, store):
    """Write what a store does to its element."""
    parameter, place, node, update = store
    value, numbers, terms = f.names[node], [], ()
    if update:
        numbers, terms = [f.names[x] for x in update.at], update.terms
    element = f"{parameter.name}[{index_expr(f, place, numbers, terms)}]"
    if update and update.how != "set":
        args = [f"({load_conversion_expr(parameter.dtype, element)})", value]
        value = f"({c_expression(update.how, args, node.dtype, node.dtype)})"
    inside = inside_text(f, (), numbers, terms)
    head = f"if ({inside}) " if inside else ""
    f.line(f"{head}{element} = {store_conversion_expr(parameter.dtype, value)};")


def render_fold_init(f, fold):
    """Declare the running value of a fold, and for an argmax the place of it."""
    arg, how, sizes = fold.args[0], fold.detail.how, f.kernel.sizes
    name = f.names[fold] = f.name("v")
    value = f"{name}_best" if is_place(fold) else name
    first = c_literal(fold_ops[how].start(arg.dtype))
    f.line(f"{c_type(arg.dtype)} {value} = {first};")
    if is_place(fold):  # behind the last place, where several threads look for it
        place = sizes[fold.detail.axes[0]] if f.launch.team > 1 else 0
        f.line(f"long long {name} = {place};")


def is_place(fold):
    """Return whether a fold looks for a place."""
    return fold.detail.how.startswith("arg")


def accumulator_names(f, fold):
    """Return the names of what a thread has of a fold, and their types."""
    name = f.names[fold]
    if is_place(fold):
        return {f"{name}_best": c_type(fold.args[0].dtype), name: "long long"}
    return {name: c_type(fold.dtype)}


def render_fold_combine(f, fold, x, place):
    """Write how a number at a place enters the running value of a fold."""
    name, how = f.names[fold], fold.detail.how
    if not is_place(fold):
        f.line(f"{name} = {c_expression(how, [name, x], fold.dtype, fold.dtype)};")
        return
    best, ahead = f"{name}_best", ">" if how == "argmax" else "<"
    wins = f"{x} {ahead} {best} || ({x} == {best} && {place} < {name})"
    if fold.args[0].dtype.kind == "f":  # the first NaN wins
        first = f"{best} == {best} || {place} < {name}"
        wins = f"{x} != {x} ? {first} : {best} == {best} && ({wins})"
    f.line(f"if ({wins}) {{ {best} = {x}; {name} = {place}; }}")


def render_thread_indices(f):
    """Write which thread of which team this is, and the outer indices of the team."""
    kernel, outer, team, teams = f.kernel, f.launch.outer, f.launch.team, f.launch.teams
    across = f.launch.across
    total, side = trip_count(kernel, outer), teams if across else team
    wide = "(long long)" if f.index != "int" else ""
    mine, who = ("/", "%") if across else ("%", "/")
    if team > 1:
        f.line(f"const int t = threadIdx.x {mine} {side};")
    which = f"threadIdx.x {who} {side}" if team > 1 else "threadIdx.x"
    number = f"{wide}blockIdx.x * {teams} + {which}"
    f.line(f"const {f.index} team = {number};")
    if team == 1:
        f.line(f"if (team >= {total}) return;")
    elif f.inactive_condition:
        f.line(f"const bool busy = team < {total};")
    rest = f"(busy ? team : {total - 1})" if f.inactive_condition else "team"
    for place, axis in reversed([*enumerate(outer)]):
        size = kernel.sizes[axis]
        value = f"{rest} % {size}" if place else rest
        f.line(f"const {f.index} {AXIS_NAMES[axis]} = {value};")
        rest = f"({rest} / {size})"


def is_loaded(kernel, parameter):
    """Return whether a kernel loads elements of a parameter."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    return any(load.parameter == parameter for load in loads)


def parameter_declarations(kernel):
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


# Kernels in two stages: what was folded and is small, the second one folds again.

MIN_STAGE_RATIO = 32  # a second stage has one index for so many of the first, at most
MIN_TWO_STAGE_ELEMENTS = 2**15  # indices of a kernel for which a second launch pays


def has_few(kernel, nodes):
    """Return whether some nodes take few indices, beside those of the whole kernel."""
    most = math.prod(kernel.sizes) // MIN_STAGE_RATIO
    return all(trip_count(kernel, node.level) <= most for node in nodes)


def second_nodes(kernel):
    """Return the set of folds of few numbers that were folded, and what follows."""
    folds = [node for node in kernel.nodes if node.op == "fold"]
    late, found = nodes_after_folds(kernel.nodes, folds), set()
    for node in kernel.nodes:
        again = node.op == "fold" and node.args[0] in late
        if (again and has_few(kernel, node.args)) or not found.isdisjoint(node.args):
            found.add(node)
    return found


def second_stage_inputs(kernel, after):
    """Return what a second stage needs of the first, by nodes, a list."""
    ends = [arg for node in kernel.nodes if node in after for arg in node.args]
    ends = [x for x in dict.fromkeys(ends) if x not in after]
    return [x for x in ends if not has_few(kernel, backward_slice([x]))]


def multi_stage_fold(step):
    """Return two launches for one that folds again what it has folded, or None."""
    kernel = step.kernel
    if not is_affine(kernel) or math.prod(kernel.sizes) < MIN_TWO_STAGE_ELEMENTS:
        return None
    after = second_nodes(kernel)
    handed = second_stage_inputs(kernel, after)
    axes = set.intersection(*[{*x.level} for x in handed]) if handed else set()
    first = [s for s in kernel.stores if s.node not in after and axes <= {*s.axes}]
    second = [store for store in kernel.stores if store not in first]
    again = backward_slice([store.node for store in second], handed)
    before = backward_slice([*handed, *[store.node for store in first]])
    axes -= {axis for x in before if x.op == "fold" for axis in x.detail.axes}
    if not axes or not has_few(kernel, again.difference(after, handed)):
        return None
    return launches_of_stages(step, first, second, handed)


def launches_of_stages(step, first, second, handed):
    """Return the launches of two stages; None if the second reads what the first wrote.

    Args:
      step: the `Launch` of both.
      first, second: their stores.
      handed: nodes, which the first stage stores as well and the second loads.
    """
    kernel, owners = step.kernel, dict(zip(step.kernel.parameters, step.buffers))
    kept, ends = [], {}
    for number, x in enumerate(handed):
        strides, size = row_strides(kernel, x)
        between = Parameter(f"stage{number}", x.dtype, size)
        name = f"{step.buffers[-1].name}_{between.name}"
        owners[between] = Buffer(name, x.dtype, size)
        place = Affine(0, tuple(strides))
        kept.append(Store(between, place, x))
        ends[x] = [load_node(between, place)]
    one = stage_kernel(kernel, [*first, *kept], {})
    two = stage_kernel(kernel, second, ends)
    read = {node.detail.parameter for node in two.nodes if node.op == "load"}
    if not read.isdisjoint([store.parameter for store in first]):
        return None
    return [Launch(x, [owners[each] for each in x.parameters]) for x in (one, two)]
