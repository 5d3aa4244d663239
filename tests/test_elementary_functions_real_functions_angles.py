"""Angles without their quarter turns, up to the largest float."""

import numpy as np
from mpmath import mp

from minijax.elementary_functions.real_functions import TWO_OVER_PI_WORDS, payne_hanek
from tests.function_cases import F64, compiled, interpreted, ulps


def angles():
    """Large numbers, and those that come next to multiples of pi/2."""
    rng = np.random.default_rng(5)
    sizes = np.ldexp(1 + rng.random(1500), rng.integers(20, 1024, 1500))
    near = [6381956970095103 * 2.0**797, 5319372648326541 * 2.0**416, 1e22]
    return np.append(sizes, [*near, 2.0**1023, float(np.finfo(F64).max), 2.0**20])


def exact(x):
    """What is left of a number, and how many quarter turns were taken off, modulo 4."""
    turns = mp.nint(mp.mpf(x) * 2 / mp.pi)
    return mp.mpf(x) - turns * mp.pi / 2, int(turns) % 4


def test_what_is_left():
    x = angles()
    with mp.workprec(1400):
        wanted = [exact(number) for number in x]
    for run in (compiled, interpreted):
        found = run(lambda k, node: payne_hanek(k, node, 20)[0], x)
        assert ulps(found, [left for left, _ in wanted]).max() < 1.7
        turns = run(lambda k, node: payne_hanek(k, node, 20)[1], x)
        np.testing.assert_array_equal(turns % 4, [count for _, count in wanted])


def test_six_words_are_enough_for_32_bits():
    x = angles()
    x = x[x < float(np.finfo(np.float32).max)].astype(np.float32).astype(np.float64)
    few, many = (
        compiled(lambda k, node, n=n: payne_hanek(k, node, n)[0], x) for n in (6, 20)
    )
    np.testing.assert_array_equal(few, many)


def test_infinity_has_no_angle():
    x = np.array([np.inf, np.nan])
    for run in (compiled, interpreted):
        assert np.isnan(run(lambda k, node: payne_hanek(k, node, 20)[0], x)).all()


def test_words_are_those_of_two_over_pi():
    with mp.workprec(64 * 20):
        digits = int(mp.floor(mp.ldexp(2 / mp.pi, 64 * 19)))
    assert TWO_OVER_PI_WORDS[0] == 0 and len(TWO_OVER_PI_WORDS) == 20
    assert (
        sum(word << 64 * (18 - k) for k, word in enumerate(TWO_OVER_PI_WORDS[1:]))
        == digits
    )
