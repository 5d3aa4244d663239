"""Conditionals, while loops and running totals as steps of machine code."""

# Made from chapters/21_machine_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial, reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.arrays.numerics import cumulative_accumulator_dtype, sum_accumulator_dtype
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import split_while_args, while_p
from minijax.cpu_backend.backend import (
    carry_layout,
    emit_carry_advance,
    emit_carry_begin,
    emit_carry_end,
    emit_carry_enter,
)
from minijax.cpu_backend.program_codegen import (
    buffer_names,
    carry_views,
    emit_program_steps,
    lower_nested,
    nested_runner,
    nested_text,
    new_buffers,
    source_buffers,
    typed_argument,
)
from minijax.kernels.builder import (
    Buffer,
    KernelBuilder,
    UnsupportedKernel,
    broadcast_view,
)
from minijax.kernels.lowering import (
    LoweredProgram,
    StepKind,
    kernel_rules,
    program_cost,
    step_kinds,
)
from minijax.llvm.instructions import llvm_memory_type
from minijax.memory.buffer_assignment import captured_buffers
from minijax.scans.loops import scan

# Conditionals and while loops as steps: their classes, rules, runners and texts.


class Branch(NamedTuple):
    """A step: run one of several programs.

    Attributes:
      index: the buffer of the number of the branch.
      programs_of_branches: list of `LoweredProgram`, without inputs.
      results: list of the buffers that their outputs are.
    """

    index: Buffer
    programs_of_branches: list
    results: list

    @property
    def programs(self):
        """The programs in the step."""
        return tuple(self.programs_of_branches)

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return self.results

    @property
    def reads(self):
        """The buffers that the step reads."""
        inside = [
            buffer
            for branch in self.programs_of_branches
            for buffer in captured_buffers(branch)
        ]
        return [self.index, *inside]

    def with_programs(self, new):
        """Return the step with other programs in it."""
        return self._replace(programs_of_branches=list(new))

    def __str__(self):
        return nested_text(
            f"{buffer_names(self.results)} = branch {self.index.name}",
            self.programs_of_branches,
        )


def lower_cond(lowering, eqn, index, *operands):
    """Lower a choice; one that is made already is its branch."""
    branches = eqn.params["branches"]
    if not isinstance(index.source, Buffer):
        return lowering.program(branches[int(index.source)], operands)
    avals = branches[0].out_avals
    writers = [partial(lowering.program, branch, operands) for branch in branches]
    programs = [lower_nested(lowering, [], write) for write in writers]
    results = new_buffers(lowering, avals)
    index = lowering.in_own_buffer(index)
    lowering.steps.append(Branch(index.source, programs, source_buffers(results)))
    return results


kernel_rules[cond_p] = lower_cond


def branched(program, step):
    """Return a function of the memory that runs one of several programs."""
    branches = [nested_runner(program, branch) for branch in step.programs_of_branches]

    def run(memory):
        [index] = memory[step.index].view(step.index.dtype)
        memory.update(zip(step.results, branches[int(index)](memory)))

    return run


def cost_of_branch(step):
    """Return, of each cost, that of the branch where it is largest."""
    return reduce(or_, map(program_cost, step.programs_of_branches))


def emit_branch(f, step):
    """Write a choice; the last branch is run for every other number."""
    kind = llvm_memory_type(step.index.dtype)
    index = f.emit(
        f"load {kind}, {typed_argument(f, f.address(step.index), step.index.dtype)}"
    )
    results, done = list(map(f.address, step.results)), f.label("chosen")
    labels = [f.label("branch") for _ in step.programs_of_branches]
    cases = [f"{kind} {n}, label %{to}" for n, to in enumerate(labels[:-1])]
    f.line(f"switch {kind} {index}, label %{labels[-1]} [ {'  '.join(cases)} ]")
    for label, branch in zip(labels, step.programs_of_branches):
        f.start(label)
        f.addresses |= zip(branch.outputs, results)
        emit_program_steps(f, branch.steps)
        f.line(f"br label %{done}")
    f.start(done)


step_kinds[Branch] = StepKind(branched, cost_of_branch, emit_branch)


class While(NamedTuple):
    """A step: run a program as long as another one says so.

    Attributes:
      test: a `LoweredProgram` from states to a bool.
      body: a `LoweredProgram` from states to the next states.
      init: list of the buffers of the states at first; the step overwrites them.
      results: list of the buffers of the states in the end.
    """

    test: LoweredProgram
    body: LoweredProgram
    init: list
    results: list

    @property
    def is_unbounded(self):
        """Whether the number of iterations is not known."""
        return True

    @property
    def programs(self):
        """The programs in the step."""
        return self.test, self.body

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [*self.init, *self.results]

    @property
    def reads(self):
        """The buffers that the step reads."""
        inside = [buffer for part in self.programs for buffer in captured_buffers(part)]
        return [*self.init, *inside]

    def with_programs(self, new):
        """Return the step with other programs in it."""
        return self._replace(test=new[0], body=new[1])

    def __str__(self):
        head = f"{buffer_names(self.results)} = while {buffer_names(self.init)}"
        return nested_text(head, self.programs)


def lower_while(lowering, eqn, *operands):
    """Lower a loop that runs as long as a condition holds."""
    [pred], params = eqn.params["cond_jaxpr"].out_avals, eqn.params
    counts = params["cond_nconsts"], params["body_nconsts"]
    test_consts, body_consts, carry = split_while_args(operands, *counts)

    def test(state):
        return lowering.program(params["cond_jaxpr"], [*test_consts, *state])

    def advance(state):
        return lowering.program(params["body_jaxpr"], [*body_consts, *state])

    avals = params["body_jaxpr"].out_avals
    if not pred.ndim:
        return _lower_while(lowering, carry, avals, test, advance)

    def advance_some(state):
        going, *olds = state
        pairs = zip(advance(olds), olds, avals)
        news = [_chosen(lowering, going, *each) for each in pairs]
        return [*test(news), *news]

    def test_any(state):
        return [_any(lowering, state[0])]

    first = [*test(carry), *carry]
    return _lower_while(lowering, first, [pred, *avals], test_any, advance_some)[1:]


def _lower_while(lowering, carry, avals, test, advance):
    starts, states = carry_views(lowering, carry, avals)
    going = lower_nested(lowering, states, lambda: test(states))
    body = lower_nested(lowering, states, lambda: advance(states))
    results = new_buffers(lowering, avals)
    lowering.steps.append(
        While(going, body, source_buffers(starts), source_buffers(results))
    )
    return results


_scalar_bool = ShapedArray((), np.dtype(bool))


def _any(lowering, going):
    """Add a step that computes whether one of some bools is true."""
    k = KernelBuilder("any", going.shape)
    found = k.fold("or", range(len(going.shape)), k.load(going))
    return lowering.launch(k, found, _scalar_bool)


def _chosen(lowering, going, new, old, aval):
    """Add a step that takes the new state of examples that go on, and else the old."""
    k = KernelBuilder("go_on", aval.shape)
    which = broadcast_view(going, aval.shape, range(len(going.shape)))
    x = k.select(*map(k.load, (which, new, old)))
    return lowering.launch(k, x, aval)


kernel_rules[while_p] = lower_while


def repeated_while(program, step):
    """Return a function of the memory that runs a program while a condition holds."""
    test, body = nested_runner(program, step.test), nested_runner(program, step.body)
    states = step.body.inputs

    def run(memory):
        memory.update(zip(states, [memory[buffer] for buffer in step.init]))
        while test(memory)[0][0]:
            memory.update(zip(states, body(memory)))
        memory.update(zip(step.results, [memory[buffer] for buffer in states]))

    return run


def cost_of_while(step):
    """Return the costs of one iteration of a loop: how many it does is not known."""
    return program_cost(step.test) + program_cost(step.body)


def emit_while(f, step):
    """Write a loop that goes on as long as its test says so."""
    carry, [going] = carry_layout(f, step.body, step), step.test.outputs
    first, before = emit_carry_begin(f, carry), f.label("before")
    f.addresses[going] = f.variable(going)
    f.line(f"br label %{before}")
    f.start(before)
    head, body, done = f.label("while"), f.label("body"), f.label("done")
    f.line(f"br label %{head}")
    f.start(head)
    mark, names = len(f.lines), [f.name("c") for _ in first]
    emit_carry_enter(f, carry, names)
    emit_program_steps(f, step.test.steps)
    found = f.emit(f"load i8, i8* {f.addresses[going]}")
    f.line(f"br i1 {f.emit(f'icmp ne i8 {found}, 0')}, label %{body}, label %{done}")
    f.start(body)
    emit_program_steps(f, step.body.steps)
    following = emit_carry_advance(f, carry, names)
    f.line(f"br label %{head}")
    f.lines[mark:mark] = [
        f"  {name} = phi i8* [ {start}, %{before} ], [ {then}, %{f.block} ]"
        for name, (_, start), then in zip(names, first, following)
    ]
    f.start(done)
    emit_carry_end(f, carry, names)


step_kinds[While] = StepKind(repeated_while, cost_of_while, emit_while)


# The kernel rule of a running total that is no fold: a loop with a state.


def lower_running_total(lowering, eqn, operand):
    """Lower `cumlogsumexp` as the program of a loop."""
    aval = eqn.outvars[0].aval
    if (
        sum_accumulator_dtype(aval.dtype) != aval.dtype
        or aval.dtype.kind == "c"
        or not aval.size
    ):
        raise UnsupportedKernel("totals of another dtype")
    return lowering.function(partial(running_total, **eqn.params), [operand])


def running_total(x, axis, reverse):
    """Return the running total as a list: rows along an axis, one per iteration."""
    order = [axis, *(k for k in range(x.ndim) if k != axis)]
    rows = lax.transpose(x, order)
    start = lax.full(rows.shape[1:], -np.inf, cumulative_accumulator_dtype(x.dtype))
    _, totals = scan(next_total, start, rows, reverse=reverse)
    return [lax.transpose(totals, [order.index(k) for k in range(x.ndim)])]


def next_total(total, x):
    """Return log(exp(total) + exp(x)), in the bits of either.

    What `x` adds to the total is computed in as many bits as `x` has; the difference of
    two infinities is 0 here.
    """
    long = lax.convert_element_type(x, total.dtype)
    larger, smaller = lax.max(total, long), lax.min(total, long)
    gap = lax.sub(smaller, larger)
    gap = lax.select(lax.eq(total, long), lax.full_like(gap, 0), gap)
    more = lax.log1p(lax.exp(lax.convert_element_type(gap, x.dtype)))
    total = lax.add(larger, lax.convert_element_type(more, total.dtype))
    return total, lax.convert_element_type(total, x.dtype)


kernel_rules[lax.cumlogsumexp_p] = lower_running_total
