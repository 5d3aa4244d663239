"""Arguments chosen by number and by name."""

from typing import NamedTuple

import numpy as np
import pytest

from minijax.jitting.arguments import (
    StaticKey,
    parameters_or_none,
    positional_parameter_names,
    resolve_argnums_and_argnames,
)
from minijax.rematerialization.caching import cache_key_of_value


def f(a, b, /, c, d=1, *, e=2):
    pass


def rest(a, *args, **kwargs):
    pass


P, R = parameters_or_none(f), parameters_or_none(rest)


@pytest.mark.parametrize(
    ("parameters", "nums", "names", "expected"),
    [
        (P, None, None, ((), set())),
        (P, 1, None, ((1,), set())),
        (P, 2, None, ((2,), {"c"})),
        (P, -1, None, ((3,), {"d"})),
        (P, (2, 3), None, ((2, 3), {"c", "d"})),
        (P, (), None, ((), set())),
        (P, None, "c", ((2,), {"c"})),
        (P, None, ["e"], ((), {"e"})),
        (P, None, ("d", "e"), ((3,), {"d", "e"})),
        (P, 2, "e", ((2,), {"e"})),
        (R, 5, None, ((5,), set())),
        (R, -1, None, ((-1,), set())),
        (R, None, "k", ((), {"k"})),
        (None, 3, "x", ((3,), {"x"})),
    ],
)
def test_chosen(parameters, nums, names, expected):
    found = resolve_argnums_and_argnames("static", parameters, nums, names)
    assert (found.nums, set(found.names)) == expected


@pytest.mark.parametrize(
    ("nums", "names", "error", "text"),
    [
        (4, None, ValueError, r"static_argnums=\(4,\).* has 4 positional"),
        (-5, None, ValueError, r"static_argnums=\(-5,\)"),
        (None, "a", ValueError, r"static_argnames=\['a'\].*by position only"),
        (None, "z", ValueError, r"no such arguments; those that it has are: c, d, e"),
        ("a", None, TypeError, "an integer as static_argnums, got 'a'"),
        (1.0, None, TypeError, "an integer as static_argnums, got 1.0"),
        (None, 3, TypeError, "static_argnames is a string or .* not 3"),
        (None, (3,), TypeError, r"static_argnames is a string or .* not \(3,\)"),
    ],
)
def test_refused(nums, names, error, text):
    with pytest.raises(error, match=text):
        resolve_argnums_and_argnames("static", P, nums, names)


def test_positions_in_a_call():
    found = resolve_argnums_and_argnames("static", R, (0, -1), None)
    assert found.positions(3) == [0, 2]
    assert found.positions(1) == [0]
    assert found.positions(0) == []


def test_signatures():
    assert positional_parameter_names(P) == ["a", "b", "c", "d"]
    assert (
        parameters_or_none(print) is None
        or positional_parameter_names(parameters_or_none(print)) == []
    )
    assert parameters_or_none(type) is None


class Two(NamedTuple):
    """A named tuple, which compares as a tuple does."""

    first: object
    second: object = 0


@pytest.mark.parametrize(
    "first, second",
    [
        (Two(1), Two(True)),
        (Two(1), Two(1.0)),
        (Two(0.0), Two(-0.0)),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        (np.float32(0.0), np.float32(-0.0)),
        ((1, (0.0,)), (1, (-0.0,))),
    ],
)
def test_static_values_that_are_equal_and_differ(first, second):
    assert first == second
    assert StaticKey(first) != StaticKey(second)
    assert StaticKey(first) == StaticKey(first)
    assert cache_key_of_value(first) != cache_key_of_value(second)
    assert cache_key_of_value(("x", first)) != cache_key_of_value(("x", second))
    assert cache_key_of_value(first) == cache_key_of_value(first)


def test_numbers_in_keys_are_their_bits():
    nan, other = float("nan"), np.uint32(0xFFC00001).view(np.float32)
    assert cache_key_of_value((nan, "a")) == cache_key_of_value((float("nan"), "a"))
    assert cache_key_of_value(np.float32("nan")) != cache_key_of_value(other)
    assert cache_key_of_value((1, (0.0,))) != cache_key_of_value((1, (0,)))
    assert cache_key_of_value(Two(1)) != cache_key_of_value((1, 0))
    assert (
        len({cache_key_of_value(x) for x in (None, 0, "", False, 0.0, -0.0, ())}) == 7
    )
