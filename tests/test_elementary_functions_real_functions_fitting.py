"""Polynomials that come as close to a function as can be."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from minijax.arrays.numerics import polyval_horner
from minijax.elementary_functions import exponentials
from minijax.elementary_functions import real_functions as angles
from minijax.elementary_functions.real_functions import (
    chebyshev_points,
    least_squares,
    minimax_fit,
    solve_linear_system,
)

mp.prec = 200
TINY = mp.mpf(10) ** -14


def rounded(numbers, dtype):
    """Numbers as floats, in the shortest digits that mean them."""
    return tuple(float(str(np.dtype(dtype).type(float(x)))) for x in numbers)


def of_square(function):
    """The function of z that another one is of the root of z."""
    return lambda z: function(mp.sqrt(z))


QUARTER = (TINY, (mp.pi / 4) ** 2)
FITS = {
    "exp": (
        exponentials.EXP["float32"], lambda r: (mp.exp(r) - 1 - r) / r**2,
        (-mp.ln2, mp.ln2), 5, lambda r: r**2 / mp.exp(r),
    ),
    "sin": (
        angles.SIN["float64"], of_square(lambda r: (mp.sin(r) - r) / r**3),
        QUARTER, 6, lambda z: z,
    ),
    "atan": (
        angles.ATAN["float32"], of_square(lambda t: (mp.atan(t) - t) / t**3),
        (TINY, mp.tan(mp.pi / 8) ** 2), 3, lambda z: z,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_tables_are_what_fits_best(name):
    table, f, ends, degree, weight = FITS[name]
    found, below, _ = minimax_fit(f, ends, degree, 0, weight)
    dtype = "float64" if len(table) > 5 and name == "sin" else "float32"
    assert rounded(found, dtype) == table
    assert below == [1]


def test_quotients():
    def f(z):
        return mp.tan(mp.sqrt(z)) / mp.sqrt(z)

    found = minimax_fit(f, (TINY, (mp.pi / 4) ** 2), 2, 2)
    assert rounded(found[0], "float32") == (1.0, *angles.TAN_TOP["float32"])
    assert rounded(found[1], "float32") == (1.0, *angles.TAN_BOTTOM["float32"])
    assert found[2] < mp.mpf(2) ** -25


def test_errors_swing_evenly():
    found, _, worst = minimax_fit(mp.exp, (mp.mpf(-1), mp.mpf(1)), 4)
    points = chebyshev_points(mp.mpf(-1), mp.mpf(1), 400)
    errors = [polyval_horner(found, x) - mp.exp(x) for x in points]
    peaks = [errors[0]]
    for error in errors:
        if error * peaks[-1] < 0:
            peaks.append(error)
        elif abs(error) > abs(peaks[-1]):
            peaks[-1] = error
    assert len(peaks) == 6
    assert min(map(abs, peaks)) > 0.95 * worst
    assert max(map(abs, peaks)) < 1.05 * worst


def test_a_polynomial_is_found_again():
    wanted = [mp.mpf(3), mp.mpf(-1), mp.mpf(2)]
    found, _, worst = minimax_fit(
        lambda x: polyval_horner(wanted, x), (mp.mpf(0), mp.mpf(1)), 3
    )
    assert worst < mp.mpf(2) ** -150
    assert all(abs(a - b) < mp.mpf(10) ** -40 for a, b in zip(found, [*wanted, 0]))


def test_equations_are_solved_with_numbers_of_any_kind():
    matrix = [[Fraction(0), Fraction(2)], [Fraction(3), Fraction(1)]]
    assert solve_linear_system(matrix, [Fraction(4), Fraction(5)]) == [1, 2]


def test_least_squares_agree_with_numpy():
    rng = np.random.default_rng(0)
    columns, right = rng.normal(size=(3, 20)), rng.normal(size=20)
    weights = rng.random(20)
    wanted = np.linalg.lstsq((columns * weights**0.5).T, right * weights**0.5)[0]
    found = least_squares(columns.tolist(), right.tolist(), weights.tolist())
    np.testing.assert_allclose(found, wanted)


def test_points_are_within():
    points = chebyshev_points(2.0, 3.0, 50)
    assert points == sorted(points) and points[0] > 2 and points[-1] < 3
    assert points[1] - points[0] < 0.1 * (points[25] - points[24])
