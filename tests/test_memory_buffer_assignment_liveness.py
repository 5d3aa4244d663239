"""Lifetimes of buffers."""

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.kernels.lowering import lower
from minijax.memory.buffer_assignment import (
    LiveRange,
    captured_buffers,
    live_ranges,
    temporaries,
)


def program_of(f, *args):
    return lower(make_jaxpr(f)(*args))


def test_from_the_first_write_to_the_last_read():
    program = program_of(lambda x: jnp.sin(jnp.exp(x) * x), jnp.ones(3))
    lives = live_ranges(program)
    x, [y] = program.inputs[0], program.outputs
    assert lives[x] == LiveRange(-1, 1) and lives[y] == LiveRange(2, 3)
    assert [lives[buffer] for buffer in temporaries(program)] == [(0, 1), (1, 2)]


def test_what_nobody_reads_and_what_is_only_passed_on():
    program = program_of(lambda x, y: y, jnp.ones(3), jnp.ones(3))
    assert [live_ranges(program)[buffer] for buffer in program.inputs] == [
        (-1, -1),
        (-1, 0),
    ]
    assert temporaries(program) == []


def test_a_buffer_that_is_written_in_parts_lives_from_the_first_part_on():
    parts = program_of(lambda x: jnp.concatenate([x, jnp.exp(x)]) + 1, jnp.ones(3))
    [whole] = [buffer for buffer in temporaries(parts) if buffer.size == 6]
    writers = [n for n, step in enumerate(parts.steps) if whole in step.writes]
    assert live_ranges(parts)[whole].start == writers[0] < writers[-1]


def test_constants_are_there_before_all():
    table = jnp.arange(3.0) + 0
    program = program_of(lambda x: x * table, jnp.ones(3))
    [(buffer, _)] = program.constants
    assert live_ranges(program)[buffer] == LiveRange(-1, 0)
    assert temporaries(program) == [] and captured_buffers(program) == []


def test_random_programs_have_lives_in_order():
    f = minijax.grad(lambda x: jnp.tanh(lax.cumsum(x * x)).sum())
    for start, end in live_ranges(program_of(f, jnp.ones(4))).values():
        assert -1 <= start <= end
