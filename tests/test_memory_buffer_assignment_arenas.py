"""Offsets in an arena."""

import numpy as np

from minijax.memory.buffer_assignment import ALIGNMENT, Arena, align_up


def test_rounded():
    assert [align_up(n) for n in (0, 1, 64, 65)] == [0, 64, 64, 128]


def test_the_smallest_gap_that_fits():
    arena = Arena()
    a, b, c, d = (arena.take(n) for n in (256, 64, 128, 64))
    arena.free(a, 256)
    arena.free(c, 128)
    assert arena.take(100) == c and arena.take(10) == a
    assert arena.take(192) == a + 64 and arena.size == d + 64


def test_gaps_join_and_the_last_one_grows():
    arena = Arena()
    places = [arena.take(64) for _ in range(3)]
    for place in (places[0], places[2], places[1]):
        arena.free(place, 64)
    assert arena.take(256) == 0 and arena.size == 256


def test_stretches_in_use_never_meet():
    rng = np.random.default_rng(0)
    arena, used = Arena(), {}
    for _ in range(2000):
        if used and rng.random() < 0.5:
            start = list(used)[rng.integers(len(used))]
            arena.free(start, used.pop(start))
        else:
            size = int(rng.integers(1, 500))
            start = arena.take(size)
            assert start % ALIGNMENT == 0 and start + size <= arena.size
            for other, length in used.items():
                assert start + size <= other or other + length <= start
            used[start] = size
    for start, size in used.items():
        arena.free(start, size)
    assert arena.take(arena.size) == 0
