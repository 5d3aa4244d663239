"""Lowering: a jaxpr as a program of steps, kernels on buffers and calls of NumPy.

Reference: the translation rules of Frostig, Johnson and Leary, *Compiling machine
learning programs via high-level tracing* (SysML 2018).
"""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from minijax._registry import Registry
from minijax.arrays.avals import ShapedArray
from minijax.arrays.settings import enable_x64
from minijax.core import RuleTable
from minijax.forgetting.remembering import key_of_params
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.shape_structs import ShapeDtypeStruct
from minijax.jaxprs.staging_api import make_jaxpr
from minijax.jitting.costs import BYTES, nbytes
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.kernel import Kernel
from minijax.kernels.views import Buffer, everywhere, reshaped, whole
from minijax.switches.promotion import any_promotion

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
      write: a function of a `StepsText` and a step that writes it there; None if
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


step_kinds = StepKinds()


def cost_of_moving(step):
    """Return the costs of a step that moves numbers, and computes none."""
    return Counter({BYTES: sum(map(nbytes, [*step.reads, *step.writes]))})


def cost_of_program(program):
    """Return the costs of all steps of a program, a `Counter`."""
    counts = [step_kinds[type(step)].cost(step) for step in program.steps]
    return sum(counts, Counter())


# From primitives to functions ``rule(lowering, eqn, *operands)`` from views to a list
# of views, which add steps that compute the results.
kernel_rules: RuleTable = RuleTable("kernel")


def _as_everywhere(lowering, eqn, *operands):
    raise NoKernel("a CPU does it by the rule of all targets")


# The rules of a CPU, which it asks before `kernel_rules`: to launch many small kernels
# costs it nothing.
cpu_rules: RuleTable = RuleTable("cpu", default=_as_everywhere)

# What is done to a `ClosedJaxpr` before it is lowered for a machine.
jaxpr_passes = Latest(lambda closed: closed)


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
        loads = [node.detail for node in self.kernel.nodes if node.op == "load"]
        read = {detail.parameter for detail in loads}
        changed = {store.parameter for store in self.kernel.stores if store.update}
        return self._buffers_of(read | changed)

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return self._buffers_of({store.parameter for store in self.kernel.stores})

    def _buffers_of(self, parameters):
        pairs = zip(self.kernel.parameters, self.buffers)
        return [buffer for parameter, buffer in pairs if parameter in parameters]

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


class Lowering:
    """Writes the steps of a program.

    Args:
      rules: a target's kernel rules by primitive, which stand in front of the common
        ones.

    Attributes:
      steps: list of steps.
      known: from what a kernel depends on to a launch of it, and the views it reads.
    """

    def __init__(self, rules=None):
        self.steps, self.constants, self.count, self.known = [], [], 0, {}
        self.rules = rules or {}

    def allocate(self, aval):
        """Return new memory for an array, and its view there."""
        buffer = Buffer(f"m{self.count}", aval.dtype, aval.size)
        self.count += 1
        return whole(buffer, aval.dtype, aval.shape)

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

    def copy(self, view):
        """Add a step that copies an array to memory of its own, row by row."""
        aval = ShapedArray(view.shape, view.dtype)
        if aval.dtype.itemsize == 0:  # float0: there is nothing to copy
            return self.allocate(aval)
        k = KernelBuilder("copy", view.shape)
        return self.launch(k, k.load(view), aval)

    def in_its_buffer(self, view):
        """Return the view of an array that has a buffer to itself, row by row."""
        return view if fills_a_buffer(view) else self.copy(view)

    def reshaped(self, view, shape):
        """Return the view of another shape, of a copy if no strides reach that."""
        found = reshaped(view, shape)
        return reshaped(self.copy(view), shape) if found is None else found

    def equation(self, eqn, operands):
        """Add the steps of an equation; return the views of its results."""
        tables = [x for x in (self.rules, kernel_rules) if eqn.primitive in x]
        for rules in tables:
            with suppress(NoKernel):
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
        with enable_x64(), any_promotion():  # switches are for the user's operations
            structs = [ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
            closed = make_jaxpr(function)(*structs)
        return self.program(closed, operands)


def _view(atom, views):
    if isinstance(atom, Literal):
        return everywhere(np.asarray(atom.val, atom.aval.dtype)[()])
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
        and where one raises `NoKernel` the common one is asked.
    """
    lowering = Lowering(rules)
    inputs = [lowering.allocate(var.aval) for var in closed.jaxpr.invars]
    outputs = map(lowering.in_its_buffer, lowering.program(closed, inputs))
    buffers = [[view.source for view in views] for views in (inputs, outputs)]
    return LoweredProgram(buffers[0], buffers[1], lowering.constants, lowering.steps)


def fills_a_buffer(view):
    """Return whether a view is all of a buffer, row by row."""
    buffer = view.source
    if not isinstance(buffer, Buffer) or buffer.size != math.prod(view.shape):
        return False
    return view == whole(buffer, buffer.dtype, view.shape)


def elementwise(body):
    """Return the kernel rule of a primitive that acts on each element by itself.

    Args:
      body: a function ``body(k, *xs, **params)`` that adds nodes to the
        `KernelBuilder` k, for the nodes of operands, and returns that of the result.
        A name stands for the scalar operation of that name.
    """

    def rule(lowering, eqn, *operands):
        aval = eqn.outvars[0].aval
        kind = body, eqn.primitive, aval.shape, aval.dtype
        params = eqn.params and key_of_params(eqn.params)
        key = (*kind, params or (), *likeness(operands))
        if key not in lowering.known:
            k = KernelBuilder(eqn.primitive.name, aval.shape)
            x = body(k, *[k.load(operand) for operand in operands], **eqn.params)
            out = lowering.launch(k, x, aval)
            lowering.known[key] = lowering.steps[-1], operands
            return [out]
        (launch, views), out = lowering.known[key], lowering.allocate(aval)
        pairs = [(a.source, b.source) for a, b in zip(views, operands)]
        now = {a: b for a, b in pairs if type(a) is Buffer}
        buffers = [now.get(buffer, out.source) for buffer in launch.buffers]
        lowering.steps.append(launch._replace(buffers=buffers))
        return [out]

    return rule


def likeness(views):
    """Return what views must have in common for one kernel to read them all."""
    found, buffers = [], {}
    for source, *rest in views:
        if type(source) is Buffer:
            source = buffers.setdefault(source, len(buffers)), source.dtype, source.size
        else:
            source = source.tobytes()
        found.append((source, *rest))
    return found


def by_scalar_op(name):
    """Return the kernel rule by the scalar operation of a name."""
    return elementwise(lambda k, *xs: k.apply(name, *xs))
