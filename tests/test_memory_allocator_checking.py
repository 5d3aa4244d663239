"""Plans that are wrong, and what the checker says."""

import dataclasses

import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.kernels.lowering import lower
from minijax.memory.aliasing import BufferLocation
from minijax.memory.allocator import PlanError, check_plan
from minijax.memory.buffer_assignment import plan_memory
from tests import memory_cases


def good(donated=()):
    def f(x, y):
        a = jnp.exp(x)[::-1]
        b = a * y
        return (b + a)[:7] * 2.0, b.sum()

    return plan_memory(lower(make_jaxpr(f)(jnp.ones(9), jnp.ones(9))), donated)


def changed(found, **places):
    """The plan with buffers in other places, by their names."""
    names = {buffer.name: buffer for buffer in found.places}
    new = {names[name]: place for name, place in places.items()}
    return dataclasses.replace(found, places=found.places | new)


def test_a_right_plan_comes_back():
    found = good((True, True))
    assert check_plan(found) is found


def complaints():
    found = good()
    arena = [buffer for buffer, place in found.places.items() if place.kind == "arena"]
    a, b = [buffer.name for buffer in arena if buffer.size == 9][:2]
    yield "not there|may not write", changed(found, **{b: found.places[arena[0]]})
    yield "is at 8 of", changed(found, **{a: BufferLocation("arena", 8)})
    yield "is at 6400 of", changed(found, **{a: BufferLocation("arena", 6400)})
    yield "not ours", changed(found, **{a: BufferLocation("input", 0)})
    yield "not ours", changed(found, **{a: BufferLocation("constant", 0)})
    missing = {
        buffer: place for buffer, place in found.places.items() if buffer.name != a
    }
    yield "has no place", dataclasses.replace(found, places=missing)


@pytest.mark.parametrize("words, found", list(complaints()))
def test_wrong_plans(words, found):
    with pytest.raises(PlanError, match=words):
        check_plan(found)


def test_in_place_has_to_be_agreed():
    chain = plan_memory(lower(make_jaxpr(lambda x: jnp.sin(jnp.exp(x)))(jnp.ones(9))))
    check_plan(chain)
    with pytest.raises(PlanError, match="may not write"):
        check_plan(dataclasses.replace(chain, in_place={}))


def test_two_results_of_a_step_apart():
    seeds = (memory_cases.Chance(seed).program(6) for seed in range(50))
    program = next(
        s for s in seeds if any(step.kernel.name == "pair" for step in s.steps)
    )
    found = plan_memory(program)
    [first, second] = next(s for s in program.steps if s.kernel.name == "pair").writes
    with pytest.raises(PlanError):
        check_plan(changed(found, **{second.name: found.places[first]}))


def test_an_operand_in_the_workspace():
    class Working:
        workspace, programs, writes = 100, (), ()

    program = lower(make_jaxpr(lambda x: jnp.exp(x)[::-1] * x.sum())(jnp.ones(9)))
    step = Working()
    step.reads = [program.steps[0].writes[0]]
    program.steps.insert(1, step)
    found = check_plan(plan_memory(program))
    [buffer] = step.reads
    wrong = changed(
        found, **{buffer.name: BufferLocation("arena", found.workspaces[1])}
    )
    with pytest.raises(PlanError):
        check_plan(wrong)
