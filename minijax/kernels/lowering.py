"""Lowering: a jaxpr as a program of steps, with a kernel rule for each primitive.

Reference: the translation rules of Frostig, Johnson and Leary, *Compiling machine
learning programs via high-level tracing* (SysML 2018).
"""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.arrays.array import ArrayImpl, ShapedArray, asbuffer
from minijax.arrays.config import permissive_promotion
from minijax.arrays.dtypes import enable_x64
from minijax.arrays.numerics import (
    cumulative_accumulator_dtype,
    power_by_squaring,
    remove_axes,
    sum_accumulator_dtype,
)
from minijax.arrays.transfer import device_put_p
from minijax.callbacks.callback import (
    debug_callback_p,
    debug_print_p,
    io_callback_p,
    pure_callback_p,
)
from minijax.control_flow.common import empty_p
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import while_p
from minijax.core import RuleTable
from minijax.custom_derivatives.custom_jvp_vjp import (
    callee_rules,
    custom_lin_p,
    stop_gradient_p,
)
from minijax.custom_derivatives.linear_solves import CUSTOM_CALL_PRIMITIVES
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal, make_jaxpr
from minijax.jaxprs.types import Hook, ShapeDtypeStruct
from minijax.jitting.compilation import backends
from minijax.jitting.primitive import jit_p
from minijax.jitting.stages import BYTES_ACCESSED, eqn_cost, nbytes
from minijax.kernels.builder import (
    Buffer,
    ComplexNode,
    KernelBuilder,
    UnsupportedKernel,
    broadcast_scalar_view,
    broadcast_view,
    contiguous_view,
    element_work,
    joining_kernel,
    padded_views,
    padding_kernel,
    real_and_imag_views,
    reshape_view,
    reverse_view,
    slice_view,
    transpose_view,
)
from minijax.kernels.ir import (
    bytes_accessed,
    flops_and_transcendentals,
    once_per_kernel,
)
from minijax.kernels.loop_nests import Kernel, interpret
from minijax.lax.reductions import fits_index_dtype
from minijax.python_backend.codegen import PythonProgram
from minijax.python_backend.codegen_rules import AXIS_NOT_BOUND_REASON, COLLECTIVES
from minijax.python_backend.source import is_evaluated
from minijax.rematerialization.caching import cache_key_of_params
from minijax.rematerialization.jaxpr_transforms import optimization_barrier_p
from minijax.rematerialization.policies import name_p
from minijax.scans.scan import scan_p

# Lowering: a jaxpr as a program of steps, kernels on buffers and calls of NumPy.

IN_THE_CLASS = {
    "reads": "a list of the buffers that it reads",
    "writes": "a list of the buffers that it writes to",
    "programs": "the programs within it, a tuple; with some, also `with_programs`",
    "__str__": "its line in the text of a program",
}


class StepKind(NamedTuple):
    """What programs know of a type of step besides what its class says.

    Attributes:
      run: a function of a program and a step that returns a function of the memory,
        which does the step.
      cost: a function of a step that returns its costs, a `Counter`.
      write: a function of a `StepsEmitter` and a step that writes it there; None if
        Python does the step for machine code.
    """

    run: Callable
    cost: Callable
    write: Callable | None = None


class StepKinds(Registry):
    """From types of steps to their `StepKind`; a type with a hole is refused."""

    def __setitem__(self, kind, rules):
        holes = [*_holes_in_class(kind), *_holes_in_rules(rules)]
        if holes:
            raise TypeError(
                f"{kind.__name__} is no step of a program yet. It lacks:\n"
                + "\n".join(f"  {hole}" for hole in holes)
            )
        super().__setitem__(kind, rules)

    def __missing__(self, kind):
        name = kind.__name__
        raise TypeError(
            f"a program has a step of type {name}, which is not registered: write "
            f"`step_kinds[{name}] = StepKind(run, cost)`"
        )

    def write_by(self, kind, write, instead_of=None):
        """Let `write` write the steps of a kind, as another function did, or none."""
        rules = self[kind]
        old = rules if rules.write is instead_of else None
        self.supersede(kind, old, rules._replace(write=write))


def _holes_in_class(kind):
    for name, meaning in IN_THE_CLASS.items():
        if getattr(kind, name, object.__str__) is object.__str__:
            yield f"{kind.__name__}.{name}: {meaning}"


def _holes_in_rules(rules):
    if not callable(rules.run):
        yield "StepKind.run: a function that returns how the step is done"
    if not callable(rules.cost):
        yield "StepKind.cost: a function that returns a Counter"


# From types of steps to what runs one, what it costs, and what writes it.
step_kinds = StepKinds()


def copy_cost(step):
    """Return the costs of a step that moves numbers, and computes none."""
    return Counter({BYTES_ACCESSED: sum(map(nbytes, [*step.reads, *step.writes]))})


def program_cost(program):
    """Return the costs of all steps of a program, a `Counter`."""
    counts = [step_kinds[type(step)].cost(step) for step in program.steps]
    return sum(counts, Counter())


# From primitives to functions ``rule(lowering, eqn, *operands)`` from views to a list
# of views, which add steps that compute the results.
kernel_rules: RuleTable = RuleTable("kernel")


def _as_everywhere(lowering, eqn, *operands):
    raise UnsupportedKernel("a CPU does it by the rule of all targets")


# The rules of a CPU, which it asks before `kernel_rules`: to launch many small kernels
# costs it nothing.
cpu_rules: RuleTable = RuleTable("cpu", default=_as_everywhere)

# What is done to a `ClosedJaxpr` before it is lowered for a machine.
jaxpr_passes = Hook(lambda closed: closed)


@once_per_kernel
def places_of_access(kernel):
    """Return the places of the parameters that a kernel reads, and that it writes."""
    read = {node.detail.parameter for node in kernel.nodes if node.op == "load"}
    read |= {store.parameter for store in kernel.stores if store.update}
    written = {store.parameter for store in kernel.stores}
    return [
        [place for place, x in enumerate(kernel.parameters) if x in found]
        for found in (read, written)
    ]


class Launch(NamedTuple):
    """A step: run a kernel, with a buffer for each of its parameters."""

    kernel: Kernel
    buffers: list

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [self.buffers[place] for place in places_of_access(self.kernel)[0]]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [self.buffers[place] for place in places_of_access(self.kernel)[1]]

    def __str__(self):
        return f"{self.kernel.label}({', '.join(x.name for x in self.buffers)})"


class Evaluate(NamedTuple):
    """A step: evaluate an equation, as NumPy does, on arrays in memory."""

    eqn: object
    operands: list
    results: list

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        sources = [view.source for view in self.operands]
        return [source for source in sources if isinstance(source, Buffer)]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [view.source for view in self.results]

    def __str__(self):
        results, operands = map(_listed, (self.results, self.operands))
        return f"{results} = {self.eqn.primitive} {operands}"


def _listed(views):
    return " ".join(map(str, views))


class LoweringContext:
    """Writes the steps of a program.

    Args:
      rules: a target's kernel rules by primitive, which stand in front of the common
        ones.

    Attributes:
      steps: list of steps.
      known: from what a kernel depends on to a launch of it, and the views it reads.
      works: from buffers to what an element takes, for the steps that are `weighed`.
    """

    def __init__(self, rules=None):
        self.steps, self.constants, self.count, self.known = [], [], 0, {}
        self.works, self.weighed = {}, 0
        self.rules = rules or {}

    def allocate(self, aval):
        """Return new memory for an array, and its view there."""
        buffer = Buffer(f"m{self.count}", aval.dtype, aval.size)
        self.count += 1
        return contiguous_view(buffer, aval.dtype, aval.shape)

    def launch(self, k, x, aval):
        """Add a step that computes an array; return its view.

        Args:
          k: the `KernelBuilder`; its first axes are those of the result.
          x: the node, or pair, to store.
          aval: of the result.
        """
        out = self.allocate(aval)
        self.run(k, (out, x))
        return out

    def launch_known(self, key, operands, aval, write):
        """Add a step that computes an array; return its view.

        Launches that differ in their buffers alone have one kernel.

        Args:
          key: what the kernel depends on beside its operands and its result.
          operands: the views that it reads.
          aval: of the result.
          write: a function that returns the `KernelBuilder` and the node to store.
        """
        key = key, aval.shape, aval.dtype, *kernel_cache_key(operands)
        if key not in self.known:
            k, x = write()
            out = self.launch(k, x, aval)
            self.known[key] = self.steps[-1], operands
            return out
        (launch, views), out = self.known[key], self.allocate(aval)
        pairs = [(a.source, b.source) for a, b in zip(views, operands)]
        now = {a: b for a, b in pairs if type(a) is Buffer}
        buffers = [now.get(buffer, out.source) for buffer in launch.buffers]
        self.steps.append(launch._replace(buffers=buffers))
        return out

    def run(self, k, *stores):
        """Add a step that runs a kernel.

        Args:
          k: the `KernelBuilder`.
          stores: pairs of a view and the node, or pair, to store there, besides those
            that have been written.
        """
        for store in stores:
            k.store(*store)
        self.steps.append(Launch(*k.kernel()))

    def work(self, buffer):
        """Return how many operations an element takes from what was there before."""
        for step in self.steps[self.weighed :]:
            own = element_work(step.kernel) if isinstance(step, Launch) else 0
            before = [self.works.get(source, 0) for source in step.reads]
            self.works.update(dict.fromkeys(step.writes, own + sum(before)))
        self.weighed = len(self.steps)
        return self.works.get(buffer, 0)

    def copy(self, view):
        """Add a step that copies an array to memory of its own, row by row."""
        aval = ShapedArray(view.shape, view.dtype)
        if aval.dtype.itemsize == 0:  # float0: there is nothing to copy
            return self.allocate(aval)
        with suppress(UnsupportedKernel):
            k = KernelBuilder("copy", view.shape)
            return self.launch(k, k.load(view), aval)
        [eqn], out = make_jaxpr(lax.copy_p.bind)(aval).eqns, self.allocate(aval)
        self.steps.append(Evaluate(eqn, [view], [out]))
        return out

    def in_own_buffer(self, view):
        """Return the view of an array that has a buffer to itself, row by row."""
        return view if is_contiguous(view) else self.copy(view)

    def reshaped(self, view, shape):
        """Return the view of another shape, of a copy if no strides reach that."""
        found = reshape_view(view, shape)
        return reshape_view(self.copy(view), shape) if found is None else found

    def equation(self, eqn, operands):
        """Add the steps of an equation; return the views of its results."""
        tables = [x for x in (self.rules, kernel_rules) if eqn.primitive in x]
        tables = [] if is_evaluated(eqn) else tables
        for rules in tables:
            with suppress(UnsupportedKernel):
                return rules[eqn.primitive](self, eqn, *operands)
        results = [self.allocate(var.aval) for var in eqn.outvars]
        self.steps.append(Evaluate(eqn, operands, results))
        return results

    def constant(self, value, aval):
        """Return the view of an array that the program has picked up."""
        view = self.allocate(aval)
        self.constants.append((view.source, value))
        return view

    def program(self, closed, operands):
        """Add the steps of a `ClosedJaxpr`; return the views of its results."""
        jaxpr, views = closed.jaxpr, dict(zip(closed.jaxpr.invars, operands))
        for var, value in zip(jaxpr.constvars, closed.consts):
            views[var] = self.constant(value, var.aval)
        for eqn in jaxpr.eqns:
            args = [_view(atom, views) for atom in eqn.invars]
            views.update(zip(eqn.outvars, self.equation(eqn, args)))
        return [_view(atom, views) for atom in jaxpr.outvars]

    def function(self, function, operands):
        """Add the steps of a function of arrays; return the views of its results."""
        with (
            enable_x64(),
            permissive_promotion(),
        ):  # switches are for the user's operations
            structs = [ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
            closed = make_jaxpr(function)(*structs)
        return self.program(closed, operands)


def _view(atom, views):
    if isinstance(atom, Literal):
        return broadcast_scalar_view(np.asarray(atom.val, atom.aval.dtype)[()])
    return views[atom]


class LoweredProgram(NamedTuple):
    """A program as steps.

    Attributes:
      inputs, outputs: list of the buffers of arguments and of results.
      constants: pairs of a buffer and the array that it holds.
      steps: list of steps, of the types in `step_kinds`.
    """

    inputs: list
    outputs: list
    constants: list
    steps: list

    def walk(self):
        """Yield all steps, those of nested programs behind their step."""
        for step in self.steps:
            yield step
            for program in step.programs:
                yield from program.walk()

    @property
    def kernels(self):
        """The kernels that differ, by their labels."""
        found: dict = {}
        for kernel in [x.kernel for x in self.walk() if isinstance(x, Launch)]:
            other = found.setdefault(kernel.label, kernel)
            if other is not kernel and str(other) != str(kernel):
                raise RuntimeError(
                    f"Two kernels of one program have the label {kernel.label}, by a "
                    'rare chance. backend="cpu" gives its functions other names.'
                )
        return found

    def __str__(self):
        ends = [" ".join(map(str, each)) for each in (self.inputs, self.outputs)]
        steps = "".join(f"  {step}\n" for step in self.steps)
        kernels = [f"{label} = {kernel}" for label, kernel in self.kernels.items()]
        return "\n\n".join([f"in {ends[0]}\n{steps}out {ends[1]}", *kernels])


def lower(closed, rules=None):
    """Return the `LoweredProgram` of a `ClosedJaxpr`.

    Args:
      closed: the `ClosedJaxpr`.
      rules: a target's kernel rules by primitive; they are asked before `kernel_rules`,
        and where one raises `UnsupportedKernel` the common one is asked.
    """
    lowering = LoweringContext(rules)
    inputs = [lowering.allocate(var.aval) for var in closed.jaxpr.invars]
    outputs = map(lowering.in_own_buffer, lowering.program(closed, inputs))
    buffers = [[view.source for view in views] for views in (inputs, outputs)]
    return LoweredProgram(buffers[0], buffers[1], lowering.constants, lowering.steps)


def is_contiguous(view):
    """Return whether a view is all of a buffer, row by row."""
    buffer = view.source
    if not isinstance(buffer, Buffer) or buffer.size != math.prod(view.shape):
        return False
    return view == contiguous_view(buffer, buffer.dtype, view.shape)


def elementwise_kernel_rule(body):
    """Return the kernel rule of a primitive that acts on each element by itself.

    Args:
      body: a function ``body(k, *xs, **params)`` that adds nodes to the
        `KernelBuilder` k, for the nodes of operands, and returns that of the result.
        A name stands for the scalar operation of that name.
    """

    def rule(lowering, eqn, *operands):
        aval = eqn.outvars[0].aval
        params = eqn.params and cache_key_of_params(eqn.params)
        key = body, eqn.primitive, params or ()

        def write():
            k = KernelBuilder(eqn.primitive.name, aval.shape)
            x = body(k, *[k.load(operand) for operand in operands], **eqn.params)
            return k, x

        return [lowering.launch_known(key, operands, aval, write)]

    return rule


def kernel_cache_key(views):
    """Return what views must have in common for one kernel to read them all."""
    found, buffers = [], {}
    for source, *rest in views:
        if type(source) is Buffer:
            source = buffers.setdefault(source, len(buffers)), source.dtype, source.size
        else:
            source = source.tobytes()
        found.append((source, *rest))
    return found


def scalar_op_kernel_rule(name):
    """Return the kernel rule by the scalar operation of a name."""
    return elementwise_kernel_rule(lambda k, *xs: k.apply(name, *xs))


# Lowering rules: primitives as kernels, one element each, or folded and rearranged.

for _op in """
    add sub mul neg exp log sin cos tanh eq lt max min abs floor ceil ne le gt ge
    exp2 expm1 log1p sqrt cbrt tan asin acos atan atan2 sinh cosh asinh acosh atanh
    erf erfc lgamma conj not and or xor population_count clz
""".split():
    kernel_rules[getattr(lax, f"{_op}_p")] = scalar_op_kernel_rule(_op)


def _rule(name, body):
    kernel_rules[getattr(lax, f"{name}_p")] = elementwise_kernel_rule(body)


_rule("copy", lambda k, x: x)
_rule("square", lambda k, x: k.square(x))
_rule("rsqrt", lambda k, x: k.div(1, k.sqrt(x)))
_rule("logistic", lambda k, x: k.div(1, k.add(1, k.exp(k.neg(x)))))
_rule("is_finite", lambda k, x: k.lt(k.abs(x), np.inf))
_rule("clamp", lambda k, low, x, high: k.min(k.max(x, low), high))
_rule("complex", lambda k, x, y: ComplexNode(x, y))
_rule("pow", lambda k, x, y: k.pow(x, k.convert(y, x.dtype)))


def _add_any(k, x, y):
    return k.apply("or" if x.dtype.kind == "b" else "add", x, y)


def _iota(k, dtype, shape, dimension):
    return k.convert(k.index(dimension), dtype)


def _select_n(k, which, *cases):
    if which.dtype.kind == "b":
        return k.select(which, cases[-1], cases[0])
    result = cases[0]
    for place, case in enumerate(cases):
        result = k.select(k.ge(which, place), case, result)
    return result


def _integer_pow(k, x, y):
    if y < 0:
        return k.div(1, _integer_pow(k, x, -y))
    return power_by_squaring(k.mul, x, y) if y else k.number(1, x)


_rule("add_any", _add_any)
_rule("iota", _iota)
_rule("select_n", _select_n)
_rule("integer_pow", _integer_pow)
_rule("convert_element_type", lambda k, x, new_dtype, **_: k.convert(x, new_dtype))


def _div(k, x, y):
    """Divide; of integers, by 0 gives all bits set, and by -1 the negative."""
    if x.dtype.kind in "fc":
        return k.div(x, y)
    safe, zero, minus = _divisor(k, y)
    quotient = k.select(zero, k.number(~x.dtype.type(0), x), k.div(x, safe))
    return quotient if minus is None else k.select(minus, k.neg(x), quotient)


def _rem(k, x, y):
    """Return what division leaves; of integers by 0, `x` itself."""
    if x.dtype.kind == "f":
        return k.rem(x, y)
    safe, zero, _ = _divisor(k, y)
    return k.select(zero, x, k.rem(x, safe))


def _divisor(k, y):
    """Return a divisor that any processor can take, and where `y` is none."""
    zero = k.eq(y, 0)
    if y.dtype.kind == "u":
        return k.select(zero, 1, y), zero, None
    minus = k.eq(y, -1)
    return k.select(k.apply("or", zero, minus), 1, y), zero, minus


_rule("div", _div)
_rule("rem", _rem)


def _sign(k, x):
    if x.dtype.kind == "u":
        return k.min(x, 1)
    one = k.select(k.gt(x, 0), 1, k.select(k.lt(x, 0), -1, x))
    return k.select(k.eq(x, 0), x, one)


def _round(k, x, rounding_method):
    if rounding_method == 1:
        return k.rint(x)
    whole = k.trunc(x)
    beyond = k.ge(k.abs(k.sub(x, whole)), 0.5)
    return k.copysign(k.add(whole, k.select(beyond, k.copysign(1, x), 0)), x)


def _shift(k, op, x, y, beyond):
    """Shift bits; by more than there are, what `beyond` says."""
    bits = k.number(x.dtype.itemsize * 8, x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    inside = k.lt(k.bitcast(y, unsigned), k.bitcast(bits, unsigned))
    return k.select(inside, k.apply(op, x, k.select(inside, y, 0)), beyond)


def _shift_right(k, x, y, kind):
    dtype = np.dtype(f"{kind}{x.dtype.itemsize}")
    bits, places = k.bitcast(x, dtype), k.bitcast(y, dtype)
    zero = k.number(0, bits)
    beyond = zero if kind == "u" else k.select(k.lt(bits, 0), -1, zero)
    return k.bitcast(_shift(k, "shift_right", bits, places, beyond), x.dtype)


_rule("sign", _sign)
_rule("round", _round)
_rule("shift_left", lambda k, x, y: _shift(k, "shift_left", x, y, k.number(0, x)))
_rule("shift_right_logical", lambda k, x, y: _shift_right(k, x, y, "u"))
_rule("shift_right_arithmetic", lambda k, x, y: _shift_right(k, x, y, "i"))


kernel_rules.reasons.update(
    dict.fromkeys(
        [lax.nextafter_p, lax.erf_inv_p, lax.digamma_p, lax.reduce_precision_p],
        "No instruction and no function of a library does it; NumPy does.",
    )
)


def viewing(change):
    """Return the rule of a primitive whose result is a view of its operand.

    Args:
      change: a function of the result's shape, the operand's view and the parameters.
    """

    def rule(lowering, eqn, operand):
        [var] = eqn.outvars
        return [change(var.aval.shape, operand, **eqn.params)]

    return rule


def _slice(shape, x, start_indices, limit_indices, strides):
    return slice_view(x, start_indices, shape, strides or (1,) * len(shape))


def _squeeze(shape, x, dimensions):
    return transpose_view(x, remove_axes(range(len(x.shape)), dimensions))


def _broadcast(_, x, shape, broadcast_dimensions):
    return broadcast_view(x, shape, broadcast_dimensions)


kernel_rules[lax.broadcast_in_dim_p] = viewing(_broadcast)
kernel_rules[lax.transpose_p] = viewing(
    lambda _, x, permutation: transpose_view(x, permutation)
)
kernel_rules[lax.rev_p] = viewing(lambda _, x, dimensions: reverse_view(x, dimensions))
kernel_rules[lax.slice_p] = viewing(_slice)
kernel_rules[lax.squeeze_p] = viewing(_squeeze)
kernel_rules[lax.real_p] = viewing(lambda _, x: real_and_imag_views(x)[0])
kernel_rules[lax.imag_p] = viewing(lambda _, x: real_and_imag_views(x)[1])


def _reshape(lowering, eqn, operand, **params):
    return [lowering.reshaped(operand, eqn.outvars[0].aval.shape)]


def _bitcast(lowering, eqn, operand):
    dtype = eqn.params["new_dtype"]
    if dtype.itemsize != operand.dtype.itemsize:
        raise UnsupportedKernel("the width of the numbers changes")
    if isinstance(operand.source, Buffer):
        return [operand._replace(dtype=dtype)]
    return [broadcast_scalar_view(operand.source.view(dtype), operand.shape)]


# Parts that are joined in one kernel: how many, and what an element of one may take.
MAX_JOINED, MAX_WORK = 4, 4


def _concatenate(lowering, eqn, *operands):
    out, axis = lowering.allocate(eqn.outvars[0].aval), eqn.params["dimension"]
    parts = [x for x in operands if 0 not in x.shape]
    if 1 < len(parts) <= MAX_JOINED and all(_is_near(lowering, x) for x in parts):
        lowering.run(joining_kernel(out, axis, parts))
        return [out]
    starts = [0] * len(out.shape)
    for part in operands:
        slot = slice_view(out, starts, part.shape, [1] * len(starts))
        k = KernelBuilder("concatenate", part.shape)
        lowering.run(k, (slot, k.load(part)))
        starts[axis] += part.shape[axis]
    return [out]


def _is_near(lowering, part):
    """Return whether a part lies in memory in rows, or is quickly made."""
    near = isinstance(part.source, Buffer) and lowering.work(part.source) <= MAX_WORK
    return near and (part.shape[-1] == 1 or abs(part.strides[-1]) <= 1)


kernel_rules[lax.reshape_p] = _reshape
kernel_rules[lax.bitcast_convert_type_p] = _bitcast
kernel_rules[lax.concatenate_p] = _concatenate


def _pad(lowering, eqn, x, value):
    gaps = [gap for _, _, gap in eqn.params["padding_config"]]
    guarded = isinstance(x.source, Buffer) and not isinstance(value.source, Buffer)
    rule = _guarded_pad if guarded and not any(gaps) else _filled_pad
    return [rule(lowering, eqn, x, value)]


def _guarded_pad(lowering, eqn, x, value):
    """Load where there is an element, and the padding value elsewhere."""
    aval, lows = eqn.outvars[0].aval, [low for low, *_ in eqn.params["padding_config"]]
    return lowering.launch(*padding_kernel(x, value.source, aval.shape, lows), aval)


def _filled_pad(lowering, eqn, x, value):
    """Fill with the padding value, then store the elements in their places."""
    k = KernelBuilder("pad", eqn.outvars[0].aval.shape)
    out = lowering.launch(k, k.load(value), eqn.outvars[0].aval)
    elements, places = padded_views(x, out, eqn.params["padding_config"])
    k = KernelBuilder("pad", elements.shape)
    lowering.run(k, (places, k.load(elements)))
    return out


kernel_rules[lax.pad_p] = _pad


def fold_kernel_rule(how):
    """Return the rule of a primitive that folds axes; they become the inner loops."""

    def fold(lowering, eqn, x, axes, aval):
        kept = remove_axes(range(len(x.shape)), axes)
        x = transpose_view(x, (*kept, *axes))
        k = KernelBuilder(eqn.primitive.name, x.shape)
        found = k.fold(how, range(len(kept), len(x.shape)), k.load(x))
        dtype = eqn.params.get("index_dtype")
        found = found if dtype is None else k.convert(found, dtype)
        return lowering.launch(k, found, aval)

    def rule(lowering, eqn, x):
        axes, aval = eqn.params["axes"], eqn.outvars[0].aval
        dtype = eqn.params.get("index_dtype")
        if dtype and not fits_index_dtype(x.shape[axes[0]], dtype):
            raise UnsupportedKernel(
                "The evaluation refuses an axis that cannot be numbered."
            )
        rows = (
            axes_folded_first(x, axes)
            if sum_accumulator_dtype(aval.dtype) == aval.dtype
            else ()
        )
        if rows:
            kept = remove_axes(range(len(x.shape)), rows)
            shape = [x.shape[axis] for axis in kept]
            x = fold(lowering, eqn, x, rows, aval.update(shape=shape))
            axes = [kept.index(axis) for axis in axes if axis in kept]
        return [fold(lowering, eqn, x, axes, aval)]

    return rule


# Numbers that make a row, and that no near cache holds.
MIN_ROW_ELEMENTS, OUT_OF_CACHE_ELEMENTS = 16, 2**18


def axes_folded_first(x, axes):
    """Return the axes of rows that are better folded first, alone; or none.

    They are the last of the axes in memory, and an axis that is kept lies between them
    and others that are folded. In one nest the loop over that axis would be outside,
    and each of its iterations would visit every part of the memory for one row.
    """
    places = sorted([(abs(step), k) for k, step in enumerate(x.strides) if step])
    apart = 0 not in [step for step, n in zip(x.strides, x.shape) if n > 1]
    rows = [k for _, k in itertools.takewhile(lambda at: at[1] in axes, places)]
    left = [k for _, k in places[len(rows) :] if k in axes]
    long = math.prod([x.shape[k] for k in rows]) >= MIN_ROW_ELEMENTS
    return (
        rows
        if apart and left and long and math.prod(x.shape) >= OUT_OF_CACHE_ELEMENTS
        else ()
    )


for _how, _folds in {
    "add": lax.reduce_sum_p, "mul": lax.reduce_prod_p, "max": lax.reduce_max_p,
    "min": lax.reduce_min_p, "and": lax.reduce_and_p, "or": lax.reduce_or_p,
    "xor": lax.reduce_xor_p, "argmax": lax.argmax_p, "argmin": lax.argmin_p,
}.items():  # fmt: skip
    kernel_rules[_folds] = fold_kernel_rule(_how)


def running_fold(how):
    """Return the rule of a cumulative fold; its axis becomes the inner loop.

    Sums and products run in numbers of 64 bits, on every target.
    """

    def rule(lowering, eqn, operand):
        aval, axis = eqn.outvars[0].aval, eqn.params["axis"]
        if sum_accumulator_dtype(aval.dtype) != aval.dtype:
            raise UnsupportedKernel("NumPy adds these up in numbers with more digits.")
        order = (*remove_axes(range(aval.ndim), [axis]), axis)
        ends = [aval.ndim - 1] if eqn.params["reverse"] else []
        out = lowering.allocate(aval)
        x, y = [reverse_view(transpose_view(a, order), ends) for a in (operand, out)]
        dtype = (
            cumulative_accumulator_dtype(aval.dtype)
            if how in ("add", "mul")
            else aval.dtype
        )
        k = KernelBuilder(eqn.primitive.name, x.shape)
        total = k.running(how, aval.ndim - 1, k.convert(k.load(x), dtype))
        lowering.run(k, (y, k.convert(total, aval.dtype)))
        return [out]

    return rule


for _how, _running in {
    "add": lax.cumsum_p, "mul": lax.cumprod_p, "max": lax.cummax_p,
    "min": lax.cummin_p,
}.items():  # fmt: skip
    kernel_rules[_running] = running_fold(_how)

for _calls in (jit_p, *CUSTOM_CALL_PRIMITIVES):
    kernel_rules[_calls] = lambda lowering, eqn, *operands: lowering.program(
        callee_rules[eqn.primitive](eqn), operands
    )
kernel_rules.reasons[custom_lin_p] = "It is never run, only transposed."


def _empty(lowering, eqn):
    """Return an array that is never read: zeros that need no memory."""
    aval = eqn.outvars[0].aval
    return [broadcast_scalar_view(aval.dtype.type(0), aval.shape)]


kernel_rules[empty_p] = _empty
for _same in (stop_gradient_p, name_p, optimization_barrier_p, device_put_p):
    kernel_rules[_same] = lambda lowering, eqn, *operands: list(operands)


_CALLS = {
    "It contains programs, and Python decides which of them runs.": [
        cond_p, while_p, scan_p,
    ],
    "It calls Python, on the other side of the border.": [
        pure_callback_p, io_callback_p, debug_callback_p, debug_print_p,
    ],
    "It is the work of a library, which NumPy calls.": [lax.dot_general_p],
    "No fold runs with logarithms of sums; NumPy does it.": [lax.cumlogsumexp_p],
    AXIS_NOT_BOUND_REASON: COLLECTIVES,
}  # fmt: skip
for _why, _primitives in _CALLS.items():
    kernel_rules.reasons.update(dict.fromkeys(_primitives, _why))


# Programs run step by step: kernels on memory, the rest by NumPy.


class KernelProgram:
    """Runs the steps of a program, one after the other; NumPy interprets its kernels.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.

    Attributes:
      program: its `LoweredProgram`.
      text: its kernels.
    """

    placement, platforms = None, ("cpu",)

    def __init__(self, closed, name="program"):
        self.lowered, self.name = self.lower(closed), name
        self.out_avals = closed.out_avals
        self.functions = self.compile(self.lowered.kernels)
        constants = self.lowered.constants
        self.constants = {buffer: as_bytes(asbuffer(x)) for buffer, x in constants}
        self.steps = [self.prepare(step) for step in self.lowered.steps]

    def lower(self, closed):
        """Return the `LoweredProgram` of a program."""
        return lower(closed)

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        self.text = str(self.lowered)
        return {label: interpreted(kernel) for label, kernel in kernels.items()}

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_kinds[type(step)].run(self, step)

    def __call__(self, *args):
        """Return the list of results."""
        memory = BufferAllocations(self.constants)
        memory.update(zip(self.lowered.inputs, map(as_bytes, map(asbuffer, args))))
        for step in self.steps:
            step(memory)
        pairs = zip(self.lowered.outputs, self.out_avals)
        arrays = [np.ndarray(aval.shape, aval.dtype, memory[x]) for x, aval in pairs]
        return [
            ArrayImpl(array, aval, self.placement)
            for array, aval in zip(arrays, self.out_avals)
        ]


class BufferAllocations(dict):
    """Bytes by buffers; a buffer gets its memory when it is first asked for."""

    def __missing__(self, buffer):
        self[buffer] = np.empty(buffer.size * buffer.dtype.itemsize, np.uint8)
        return self[buffer]


def as_bytes(array):
    """Return the numbers of a NumPy array, row by row, as bytes."""
    if array.dtype.itemsize == 0:  # float0, whose numbers are all zero
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def interpreted(kernel):
    """Return a function of the memory of a kernel's parameters."""

    def run(*memory):
        pairs = zip(kernel.parameters, memory)
        interpret(kernel, {x.name: data.view(x.dtype) for x, data in pairs})

    return run


def launch_runner(program, step):
    """Return a function of the memory that runs the function of a kernel."""
    function, buffers = program.functions[step.kernel.label], step.buffers
    return lambda memory: function(*[memory[buffer] for buffer in buffers])


def evaluate_runner(program, step):
    """Return a function of the memory that evaluates an equation on arrays in it.

    The equation is made a program of its own, and that a function of Python.
    """
    pairs = zip(step.eqn.invars, step.operands)
    operands = {x: view for x, view in pairs if not isinstance(x, Literal)}
    jaxpr = Jaxpr([], [*operands], step.eqn.outvars, [step.eqn])
    function = PythonProgram(ClosedJaxpr(jaxpr, []), step.eqn.primitive.name).function

    def run(memory):
        found = function(*[array_from_view(view, memory) for view in operands.values()])
        for result, array in zip(step.results, found):
            memory[result.source] = as_bytes(array)

    return run


def cost_of_launch(step):
    """Return the costs of a kernel."""
    kernel = step.kernel
    return Counter(flops_and_transcendentals(kernel)) + Counter(
        {BYTES_ACCESSED: sum(bytes_accessed(kernel))}
    )


def cost_of_evaluation(step):
    """Return the costs of an equation."""
    return Counter(eqn_cost(step.eqn))


step_kinds[Launch] = StepKind(launch_runner, cost_of_launch)
step_kinds[Evaluate] = StepKind(evaluate_runner, cost_of_evaluation)


def array_from_view(view, memory):
    """Return the array that a view describes, or a scalar if it has no axes."""
    if not isinstance(view.source, Buffer):
        return np.broadcast_to(view.source, view.shape)[()]
    if 0 in view.shape:
        return np.empty(view.shape, view.dtype)
    width, data = view.dtype.itemsize, memory[view.source]
    strides = [width * stride for stride in view.strides]
    offset = view.offset * width
    return np.ndarray(view.shape, view.dtype, data, offset, strides)[()]


KernelProgram.dialects = {"kernels": lambda program: str(program.lowered)}
backends["kernels"] = KernelProgram
