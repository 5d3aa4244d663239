"""Where elements were made: digits, and axes that are split for them."""

import itertools

import numpy as np
import pytest

from minijax.fusion.merging import (
    delinearize,
    delinearize_bounds,
    delinearize_in_bounds,
    split_loop_axis,
)
from minijax.kernels.builder import compose_place, identity_map
from minijax.kernels.ir import Affine

BOX = Affine(0, (12, 4, 1)), (2, 3, 4)


def test_unit():
    assert identity_map(0) == () and identity_map(1) == (Affine(0, (1,)),)
    assert identity_map(2) is identity_map(2) and str(identity_map(2)[1]) == "j"


def test_seen_along():
    maps = Affine(2, (3, 0, 1)), Affine(0, (0, -1, 0))
    assert compose_place(Affine(5, (10, 1)), maps, 3) == Affine(25, (30, -1, 10))
    assert compose_place(Affine(5, (10, 0)), maps, 3) == Affine(25, (30, 0, 10))
    assert compose_place(Affine(7, ()), (), 2) == Affine(7, (0, 0))


@pytest.mark.parametrize(
    "place, sizes, wanted",
    [
        (BOX[0], BOX[1], ["i", "j", "k"]),
        (Affine(0, (1, 4, 12)), (4, 3, 2), ["k", "j", "i"]),
        (Affine(23, (-12, -4, -1)), (2, 3, 4), ["-i + 1", "-j + 2", "-k + 3"]),
        (Affine(17, (2,)), (2,), ["1", "1", "2*i + 1"]),
        (Affine(1, (17,)), (2,), ["i", "i", "i + 1"]),
        (Affine(5, (0, 12)), (9, 2), ["j", "1", "1"]),
    ],
)
def test_digits(place, sizes, wanted):
    found, cut = delinearize_in_bounds(place, sizes, *BOX)
    assert cut is None and list(map(str, found)) == wanted


def test_axes_along_which_a_target_does_not_move():
    target = Affine(3, (0, -2)), (5, 6)
    assert delinearize(Affine(-1, (2,)), (3,), *target)[0] is None
    assert str(delinearize(Affine(-7, (2,)), (6,), *target)[1]) == "-i + 5"
    assert delinearize(Affine(0, (2,)), (3,), *target) is None, (
        "it is between two elements"
    )


@pytest.mark.parametrize(
    "place, sizes, cut",
    [
        (Affine(0, (1,)), (24,), (0, 4)),
        (Affine(0, (4, 1)), (6, 4), (0, 3)),
        (Affine(23, (-1,)), (24,), (0, 4)),
        (Affine(0, (2,)), (12,), (0, 2)),
        (Affine(1, (1,)), (6,), False),
        (Affine(20, (4,)), (2,), False),
    ],
)
def test_overflow(place, sizes, cut):
    assert delinearize_bounds(delinearize(place, sizes, *BOX), sizes, BOX[1]) == cut


def random_case(rng):
    """A place, its sizes, and a target with limits that walks over a whole box."""
    limits = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 4)))
    order = rng.permutation(len(limits))
    strides, step = [0] * len(limits), int(rng.integers(1, 3))
    for axis in order:
        sign = int(rng.choice([-1, 1]))
        strides[axis] = sign * step if limits[axis] > 1 else 0
        step *= limits[axis]
    target = Affine(int(rng.integers(-3, 4)), tuple(strides))
    sizes = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    homes = [
        Affine(
            int(rng.integers(0, 3)), tuple(map(int, rng.integers(-1, 3, len(sizes))))
        )
        for _ in limits
    ]
    return compose_place(target, tuple(homes), len(sizes)), sizes, target, limits


def test_random_places():
    rng, right = np.random.default_rng(0), 0
    for _ in range(3000):
        place, sizes, target, limits = random_case(rng)
        found, _ = delinearize_in_bounds(place, sizes, target, limits)
        for at in itertools.product(*map(range, sizes)) if found else ():
            there = [0 if home is None else home.at(at) for home in found]
            assert all(0 <= n < limit for n, limit in zip(there, limits))
            assert target.at(there) == place.at(at)
        right += found is not None
    assert right > 500


def test_a_place_along_two_axes_for_one():
    maps, sizes = split_loop_axis(0, 4, (12,))
    place = compose_place(identity_map(1)[0], maps, len(sizes))
    assert sizes == (3, 4) and str(place) == "4*i + j"
