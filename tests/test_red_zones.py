"""Guard bytes are where they should be, and who writes over them is found."""

import ctypes

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax
from minijax.cpu_backend.backend import CPUProgram
from tests.red_zones import GUARD, LAYOUTS, NONSENSE, RedZones


def put(address, number=1):
    """Write a byte."""
    ctypes.memset(int(address), number, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (0, 3), (17,), (2, 3, 5)])
def test_layouts_change_no_numbers(layout, shape):
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    with RedZones() as zones:
        np.testing.assert_array_equal(zones.laid_out(x, layout), x)
        np.testing.assert_array_equal(jit(jnp.negative)(zones.laid_out(x, layout)), -x)
    assert zones.problems == []


@pytest.mark.parametrize("place", [-1, -GUARD, 68, 68 + GUARD - 1])
def test_a_byte_beside_an_argument_is_found(place):
    with RedZones() as zones:
        x = zones.laid_out(np.ones(17, np.float32))
        put(x.ctypes.data + place)
    [problem] = zones.problems
    assert "1 bytes written" in problem and "float32[17] of 68 bytes" in problem


def test_a_byte_behind_a_result_is_found():
    with RedZones() as zones:
        y = jit(lambda x: x + 1)(np.ones(17, np.float32))
        put(np.asarray(y).ctypes.data + 68)
    assert "written behind memory of 68 bytes (at 0)" in zones.problems[0]


def test_a_result_that_changes_later_is_found():
    with RedZones() as zones:
        y = jit(lambda x: x + 1)(np.ones(3, np.float32))
        put(np.asarray(y).ctypes.data, 77)
    assert zones.problems == ["a result has changed: float32[3]"]


@pytest.mark.parametrize("apart", [True, False])
def test_a_byte_between_buffers_is_found(apart, monkeypatch):
    def f(x):
        return lax.cumsum(jnp.sin(x) @ x, 1)

    with RedZones(apart) as zones:
        call = CPUProgram.__call__

        def writes_too_far(program, *args):
            arenas = zones.arenas
            result = program.function

            def run(memory, arena, context):
                free = np.flatnonzero(arenas[-1].bytes == NONSENSE)
                status = result(memory, arena, context)
                still = free[arenas[-1].bytes[free] == NONSENSE]
                put(arena + still[-1])
                return status

            program.function = run
            return call(program, *args)

        monkeypatch.setattr(CPUProgram, "__call__", writes_too_far)
        jit(f)(np.ones((33, 33), np.float32))
        monkeypatch.undo()
    assert bool(zones.problems) == apart


def test_memory_is_full_of_nonsense_before():
    with RedZones() as zones:
        assert set(zones.scratch(100).tolist()) == {NONSENSE}
        assert (zones.like(np.zeros(3, np.uint8)) == NONSENSE).all()
