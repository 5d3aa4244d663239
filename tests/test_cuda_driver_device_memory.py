"""Stretches of a card's memory, and who may write there."""

import gc

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.cuda.driver import DeviceBuffer, device_allocate, donated_bytes
from minijax.errors import JaxRuntimeError
from minijax_book import emulator
from tests.emulated_card import emulated_gpu

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")


@pytest.fixture
def machine():
    with emulated_gpu(memory=2**16) as pair:
        yield pair


def test_stretches_are_cut_and_copied(machine):
    card = machine[0].card
    data = device_allocate(card, 16).fill(np.float32([1, 2, 3, 4]))
    part = data[4:12]
    assert len(part) == 8 and part.view("float32").tolist() == [2, 3]
    data[:8] = data[8:]
    data[:] = data[:]
    assert data.view("float32").tolist() == [3, 4, 3, 4]
    assert data[0] == data.fetch()[0]
    assert device_allocate(card, 0).fetch().size == 0


def test_memory_is_given_back_and_never_more_is_used(machine):
    gpu, cupy = machine
    minijax.device_put(jnp.ones(64), gpu).block_until_ready()
    gc.collect()
    before = cupy.memory.in_use
    x = minijax.device_put(jnp.ones(64), gpu)
    for _ in range(200):
        x = x * 2 - x
    assert x.tolist() == [1.0] * 64
    assert cupy.memory.in_use <= before + 64 * 4 * 2
    del x
    gc.collect()
    assert cupy.memory.in_use == before


def test_a_full_card_says_what_it_wanted(machine):
    gpu, _ = machine
    with pytest.raises(
        JaxRuntimeError, match=r"70000 bytes for a copy on EmulatedCuda"
    ):
        minijax.device_put(np.ones(17500, np.float32), gpu)
    x = minijax.device_put(jnp.ones(5000), gpu)
    wanted = "RESOURCE_EXHAUSTED.*for a result of add on"
    with pytest.raises(JaxRuntimeError, match=wanted):
        [x + 1 for _ in range(9)]
    assert float(x[0]) == 1


def test_what_two_arrays_hold_is_copied_before_it_is_given_up(machine):
    gpu, _ = machine
    x = minijax.device_put(jnp.arange(4.0), gpu)
    assert donated_bytes(x).address == x._buffer.bytes.address
    other = x.__copy__()
    assert donated_bytes(x).address != other._buffer.bytes.address
    numbers = DeviceBuffer(donated_bytes(x), (4,), np.dtype("float32")).numbers()
    assert numbers.tolist() == [0, 1, 2, 3]
