"""Loops and choices as steps: what they read and write, and what they capture."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr, vmap
from minijax.control_flow.conditionals import cond_p
from minijax.cpu_backend.control_flow import Branch, While
from minijax.cpu_backend.program_codegen import ScanStep
from minijax.kernels.lowering import lower
from minijax.memory.buffer_assignment import captured_buffers
from tests import emission_cases

X, M = jnp.arange(4.0), jnp.ones((4, 4))


def last_step(f, *args):
    return lower(make_jaxpr(f)(*args)).steps[-1]


def test_scan():
    def f(x, m):
        return lax.scan(lambda c, row: (m.T @ c + row, c.sum()), x, m, reverse=True)

    program = lower(make_jaxpr(f)(X, M))
    step, (x, m) = program.steps[-1], program.inputs
    assert isinstance(step, ScanStep) and step.length == 4 and step.reverse
    assert step.xs == [m] and captured_buffers(step.body) == [m]
    assert step.init[0] not in (x, m), "the loop writes to its starts"
    assert {*step.init, *step.results, *step.ys} == {*step.writes}
    assert program.outputs == [*step.results, *step.ys]


def test_rows_that_are_all_the_same_are_constants():
    def f(x):
        rows = jnp.broadcast_to(x, (5, 4)), jnp.zeros((5, 4))
        return lax.scan(lambda c, xs: (c + xs[0] + xs[1], None), x, rows)[0]

    assert last_step(f, X).xs == []


def test_while_reads_what_its_programs_capture():
    def f(x, limit):
        return lax.while_loop(lambda c: c.sum() < limit, lambda c: c + x, x * 2)

    program = lower(make_jaxpr(f)(X, 9.0))
    step = program.steps[-1]
    assert isinstance(step, While)
    assert {*program.inputs, *step.init} == {*step.reads}


def test_batches_of_loops_carry_who_goes_on():
    def f(x):
        return lax.while_loop(lambda c: c < 9, lambda c: c + 1, x)

    step = last_step(vmap(f), X)
    assert [buffer.dtype.name for buffer in step.init] == ["bool", "float32"]


def test_choice():
    def f(x, i):
        return lax.switch(i, [lambda: x, lambda: x + 1, lambda: 2 * x])

    step = last_step(f, X, 1)
    assert isinstance(step, Branch) and len(step.programs_of_branches) == 3
    assert all(branch.inputs == [] for branch in step.programs_of_branches)


def test_a_choice_that_is_made_is_no_step():
    closed = make_jaxpr(lambda i: lax.switch(i, [jnp.sin, jnp.cos], X))(1)
    [eqn] = [eqn for eqn in closed.eqns if eqn.primitive is cond_p]
    made = make_jaxpr(lambda x: cond_p.bind(np.int32(1), x, **eqn.params)[0])(X)
    assert [step.kernel.name for step in lower(made).steps] == ["cos"]


def check_nested(program):
    """Check the laws of nested programs, all the way down."""
    for step in program.steps:
        for inner in step.programs:
            written = [buffer for each in inner.steps for buffer in each.writes]
            assert len({*inner.outputs}) == len(inner.outputs)
            assert {*inner.outputs} <= {*written}
            assert not {*inner.inputs} & {*written}
            assert not {*captured_buffers(inner)} & {*written}
            assert {*captured_buffers(inner)} <= {*step.reads}
            assert inner.constants == []
            check_nested(inner)


@pytest.mark.parametrize("number", range(7))
def test_laws_of_nested_programs(number):
    for name, f, operands in list(emission_cases.control())[number::71]:
        closed = emission_cases.written_down(f, operands)
        if closed is not None:
            program = lower(closed)
            check_nested(program)
            assert "in " in str(program), name


def test_other_programs_in_a_step():
    step = last_step(lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x), X)
    empty = step.body._replace(steps=[])
    assert step.with_programs([empty]).body is empty
