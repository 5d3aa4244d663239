# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Lowering: a program as a schedule of steps, kernels on slots and calls of NumPy.

Reference: the translation rules of Frostig, Johnson and Leary, *Compiling machine
learning programs via high-level tracing* (SysML 2018).
"""

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from minijax.core import RuleTable
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.latest import Latest
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.kernel import Kernel
from minijax.kernels.layouts import Slot, everywhere, whole

# From primitives to functions ``rule(lowering, eqn, *operands)`` from layouts to a list
# of layouts, which add steps that compute the results.
kernel_rules = RuleTable("kernel")

# What is done to a `ClosedJaxpr` before it is lowered for a machine.
jaxpr_passes = Latest(lambda closed: closed)


class Launch(NamedTuple):
    """A step: run a kernel on some slots."""

    kernel: Kernel
    slots: list

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The slots that the step reads."""
        read = {node.detail.buffer for node in self.kernel.nodes if node.op == "load"}
        changed = {store.buffer for store in self.kernel.stores if store.update}
        return self._slots_of(read | changed)

    @property
    def writes(self):
        """The slots that the step writes to."""
        return self._slots_of({store.buffer for store in self.kernel.stores})

    def _slots_of(self, buffers):
        pairs = zip(self.kernel.buffers, self.slots)
        return [slot for buffer, slot in pairs if buffer in buffers]

    def __str__(self):
        return f"{self.kernel.label}({', '.join(slot.name for slot in self.slots)})"


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
        """The slots that the step reads."""
        sources = [layout.source for layout in self.operands]
        return [source for source in sources if isinstance(source, Slot)]

    @property
    def writes(self):
        """The slots that the step writes to."""
        return [layout.source for layout in self.results]

    def __str__(self):
        results, operands = map(_listed, (self.results, self.operands))
        return f"{results} = {self.eqn.primitive} {operands}"


def _listed(layouts):
    return " ".join(map(str, layouts))


class Lowering:
    """Writes the steps of a program.

    Args:
      rules: a target's kernel rules by primitive, which stand in front of the common
        ones.

    Attributes:
      steps: list of steps.
      known: from what a kernel depends on to a launch of it, and the layouts it reads.
    """

    def __init__(self, rules=None):
        self.steps, self.constants, self.count, self.known = [], [], 0, {}
        self.rules = rules or {}

    def slot(self, aval):
        """Return new memory for an array, and its layout there."""
        slot = Slot(f"m{self.count}", aval.dtype, aval.size)
        self.count += 1
        return whole(slot, aval.dtype, aval.shape)

    def launch(self, k, x, aval):
        """Add a step that computes an array; return its layout.

        Args:
          k: the `KernelBuilder`; its first axes are those of the result.
          x: the node, or pair, to store.
          aval: of the result.
        """
        out = self.slot(aval)
        self.launch_into(out, k, x)
        return out

    def launch_into(self, out, k, x):
        """Add a step that computes elements of a layout that has memory already."""
        k.store(out, x)
        self.run(k)

    def run(self, k):
        """Add a step that runs a kernel, whose stores have been written."""
        self.steps.append(Launch(*k.kernel()))

    def launch_again(self, launch, old, new, aval):
        """Add a step with the kernel of another one; return the layout of its result.

        Args:
          launch: the other step.
          old, new: the layouts that it reads, and those in their places.
          aval: of the result.
        """
        out = self.slot(aval)
        slots = {a.source: b.source for a, b in zip(old, new) if type(a.source) is Slot}
        slots = [slots.get(slot, out.source) for slot in launch.slots]
        self.steps.append(launch._replace(slots=slots))
        return out

    def copy(self, layout, aval):
        """Add a step that copies an array to memory of its own, row by row."""
        if aval.dtype.itemsize == 0:  # float0: there is nothing to copy
            return self.slot(aval)
        k = KernelBuilder("copy", layout.shape)
        return self.launch(k, k.load(layout), aval)

    def equation(self, eqn, operands):
        """Add the steps of an equation; return the layouts of its results."""
        for rules in (self.rules, kernel_rules):
            with suppress(NoKernel):
                if eqn.primitive in rules:
                    return rules[eqn.primitive](self, eqn, *operands)
        results = [self.slot(var.aval) for var in eqn.outvars]
        self.steps.append(Evaluate(eqn, operands, results))
        return results

    def constant(self, value, aval):
        """Return the layout of an array that the program has picked up."""
        self.constants.append((self.slot(aval), value))
        return self.constants[-1][0]

    def program(self, closed, operands):
        """Add the steps of a `ClosedJaxpr`; return the layouts of its results."""
        layouts = dict(zip(closed.invars, operands))
        for var, value in zip(closed.constvars, closed.consts):
            layouts[var] = self.constant(value, var.aval)
        for eqn in closed.eqns:
            args = [_layout(atom, layouts) for atom in eqn.invars]
            layouts.update(zip(eqn.outvars, self.equation(eqn, args)))
        return [_layout(atom, layouts) for atom in closed.outvars]


def _layout(atom, layouts):
    if isinstance(atom, Literal):
        return everywhere(np.asarray(atom.val, atom.aval.dtype)[()])
    return layouts[atom]


class LoweredProgram(NamedTuple):
    """A program as steps.

    Attributes:
      inputs, outputs: list of the slots of arguments and of results.
      constants: pairs of a slot and the array that it holds.
      steps: list of steps, of the types in `step_kinds`.
    """

    inputs: list
    outputs: list
    constants: list
    steps: list

    def walk(self):
        """Yield all steps, those of schedules within steps behind their step."""
        for step in self.steps:
            yield step
            for schedule in step.programs:
                yield from schedule.walk()

    @property
    def kernels(self):
        """The kernels that differ, by their labels."""
        launches = [step for step in self.walk() if isinstance(step, Launch)]
        return {launch.kernel.label: launch.kernel for launch in launches}

    def __str__(self):
        ends = [f"{' '.join(map(str, slots))}" for slots in (self.inputs, self.outputs)]
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
    inputs = [lowering.slot(aval) for aval in closed.in_avals]
    outputs = [
        layout if fills_a_slot(layout) else lowering.copy(layout, aval)
        for layout, aval in zip(lowering.program(closed, inputs), closed.out_avals)
    ]
    constants = [(layout.source, value) for layout, value in lowering.constants]
    slots = [[layout.source for layout in layouts] for layouts in (inputs, outputs)]
    return LoweredProgram(slots[0], slots[1], constants, lowering.steps)


def fills_a_slot(layout):
    """Return whether a layout is all of a slot, row by row."""
    slot = layout.source
    if not isinstance(slot, Slot) or slot.size != math.prod(layout.shape):
        return False
    return layout == whole(slot, slot.dtype, layout.shape)


def elementwise(body):
    """Return the kernel rule of a primitive that acts on each element by itself.

    Args:
      body: a function ``body(k, *xs, **params)`` that adds nodes to the
        `KernelBuilder` k, for the nodes of operands, and returns that of the result.
        A name stands for the scalar operation of that name.
    """

    def rule(lowering, eqn, *operands):
        aval = eqn.outvars[0].aval
        key = (body, eqn.primitive, *eqn.params.items(), aval, *likeness(operands))
        if key in lowering.known:
            launch, layouts = lowering.known[key]
            return [lowering.launch_again(launch, layouts, operands, aval)]
        k = KernelBuilder(eqn.primitive.name, aval.shape)
        x = body(k, *[k.load(operand) for operand in operands], **eqn.params)
        out = lowering.launch(k, x, aval)
        lowering.known[key] = lowering.steps[-1], operands
        return [out]

    return rule


def likeness(layouts):
    """Return what layouts must have in common for one kernel to read them all."""
    found, slots = [], {}
    for source, *view in layouts:
        if type(source) is Slot:
            source = slots.setdefault(source, len(slots)), source.dtype, source.size
        else:
            source = source.tobytes()
        found.append((source, *view))
    return found


def by_scalar_op(name):
    """Return the kernel rule by the scalar operation of a name."""
    return elementwise(lambda k, *xs: k.apply(name, *xs))
