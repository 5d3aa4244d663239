"""Plans of memory: random programs, programs, and what must not be shared."""

import time

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, lax, make_jaxpr
from minijax.jitting.compilation import Interpreter, dce_for_compilation
from minijax.kernels.builder import Buffer
from minijax.kernels.lowering import KernelProgram, lower
from minijax.memory.aliasing import BufferLocation
from minijax.memory.allocator import PlannedProgram, check_plan
from minijax.memory.buffer_assignment import plan_memory, temporaries
from tests import composition, corpus, memory_cases
from tests.kernel_cases import alike


def planned(f, *args, donated=()):
    return check_plan(plan_memory(lower(make_jaxpr(f)(*args)), donated))


@pytest.mark.parametrize("block", range(6))
def test_random_programs(block):
    for seed in range(10 * block, 10 * block + 10):
        assert memory_cases.problem(seed) is None


class Interpreted(PlannedProgram):
    """Runs programs in planned memory, without machine code."""

    compile = KernelProgram.compile


@pytest.mark.parametrize("name", composition.PROGRAMS)
def test_compositions(name):
    rng = np.random.default_rng(len(name))
    f, point = composition.PROGRAMS[name]
    stacks = sorted(corpus.stacks_of(name))
    for stack in [stacks[k] for k in rng.integers(0, len(stacks), 2)]:
        g = corpus.apply(composition.TABLE, stack, f)
        try:
            closed = dce_for_compilation(
                make_jaxpr(lambda x, g=g: jnp.asarray(g(x)))(point)
            )
        except Exception:  # refused while it is written down
            continue
        program = Interpreted(closed)
        check_plan(program.plan)
        pairs = zip(program(point), Interpreter(closed)(point), strict=True)
        for ours, wanted in pairs:
            assert alike(ours, wanted, least=0.01), stack


X = jnp.linspace(0.0, 1.0, 100)


def test_a_chain_lives_in_its_result():
    found = planned(lambda x: jnp.sin(jnp.exp(x) * x) + x, X)
    assert found.arena == 0
    assert {str(found.places[buffer]) for buffer in temporaries(found.program)} == {
        "output 0"
    }


def test_a_result_in_a_donated_argument():
    found = planned(lambda w, g: (w - 0.1 * g, g.sum()), X, X, donated=(True, True))
    w, _ = found.program.inputs
    assert found.places[found.program.outputs[0]] == BufferLocation("input", 0)
    assert found.donated == (True, False)  # of the other one no result has the size
    [(number, pairs)] = found.in_place.items()
    assert pairs[-1] == (w, found.program.outputs[0]) or number >= 0


def test_a_donated_argument_that_is_needed_to_the_end():
    found = planned(lambda x: jnp.exp(x)[::-1] * 2 + x[::-1], X, donated=(True,))
    assert found.donated == (False,)


@pytest.mark.parametrize("donated", [(), (True, True)])
def test_results_that_are_arguments_constants_or_twice_the_same(donated):
    table = jnp.arange(100.0) + 0

    def f(x, y):
        z = x + y
        return x, table, z, z, y

    found = planned(f, X, X, donated=donated)
    places = [str(found.places[buffer]) for buffer in found.program.outputs]
    assert places == ["input 0", "constant 0", "output 2", "output 2", "input 1"]
    assert found.donated == (False, False)


def test_each_donated_argument_serves_once():
    found = planned(lambda x: (x + 1, x + 2), X, donated=(True,))
    places = sorted(str(found.places[buffer]) for buffer in found.program.outputs)
    assert places == ["input 0", "output 0"]


def test_arrays_without_elements():
    found = planned(lambda x: jnp.exp(x * 2.0)[:0] * 3.0, jnp.ones((0, 3)))
    assert found.arena == 0


def test_temporaries_that_do_not_live_together_share():
    def f(x):
        for _ in range(6):
            x = jnp.sin(x)[::-1] + x.sum()
        return x.sum()

    found = planned(f, X)
    sizes = [4 * buffer.size for buffer in temporaries(found.program)]
    assert found.arena <= 3 * 448 < sum(sizes) / 2


def test_loops_get_blocks():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(jnp.exp(c)[::-1] * c), x) * 2.0

    closed = make_jaxpr(f)(X)
    found = check_plan(Interpreted(closed).plan)
    for number, offset in found.blocks.items():
        inner = max(each.arena for each in found.nested[number])
        assert offset >= 0 and offset + inner <= found.arena
    [ours], [wanted] = Interpreted(closed)(X), Interpreter(closed)(X)
    assert alike(ours, wanted)


class Working:
    """A step that asks for memory of its own."""

    workspace, programs, reads, writes = 100, (), (), ()


def test_workspaces():
    program = lower(make_jaxpr(lambda x: jnp.exp(x)[::-1] * x.sum())(X))
    program.steps.insert(1, Working())
    found = check_plan(plan_memory(program))
    assert [*found.workspaces] == [1] and found.arena >= 128


def test_long_programs_take_no_quadratic_time():
    def f(x):
        for _ in range(2000):
            x = jnp.sin(x) * x
        return x

    program = lower(make_jaxpr(f)(jnp.ones(3)))
    start = time.process_time()  # which does not run while others use the computer
    found = plan_memory(program)
    assert time.process_time() - start < 20 and found.arena <= 128


def test_gradients_are_planned_well():
    f = grad(lambda w: jnp.tanh(jnp.outer(w, w) * 2.0).sum())
    found = planned(f, X)
    whole = sum(4 * buffer.size for buffer in temporaries(found.program))
    assert found.arena < 0.5 * whole


def test_buffers_are_told_apart_by_identity():
    assert Buffer("m", np.dtype("f4"), 3) != Buffer("m", np.dtype("f4"), 3)
