"""The programs of a newcomer run, and give numbers that are known otherwise."""

from collections import Counter

import numpy as np
import pytest

import minijax
from tests.newcomer_programs import PROGRAMS, SUBJECTS, subject


def leaves(name, package=minijax):
    return package.tree_util.tree_leaves(PROGRAMS[name](package))


def test_twenty_are_on_four_subjects_and_each_names_its_page():
    assert all(f.__doc__.startswith('Page "') for f in PROGRAMS.values())
    numbers = Counter(map(subject, PROGRAMS.values()))
    assert numbers.keys() >= SUBJECTS.keys() and min(numbers.values()) >= 4
    assert numbers.total() - numbers[None] >= 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs_compiled_and_not(name):
    if name == "layers_that_forget" and not hasattr(minijax, "checkpoint"):
        pytest.skip("nothing forgets yet")
    at_once = leaves(name)
    if subject(PROGRAMS[name]) == "errors":
        assert at_once[-1]  # it is refused; without jit it would not be
        return
    with minijax.disable_jit():
        slowly = leaves(name)
    for x, y in zip(at_once, slowly, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_known_numbers():
    stable = PROGRAMS["softplus_that_does_not_overflow"](minijax)
    assert np.isnan(stable["plain"][3]) and stable["stable"][3] == 1
    fixed = PROGRAMS["implicit_fixed_point"](minijax)
    assert abs(fixed["slope"] - fixed["exact"]) < 1e-4
    line = PROGRAMS["a_line_is_fitted"](minijax)
    assert abs(line["params"]["w"] - 3) < 0.5 and line["last"] < line["first"] / 10
    assert [int(n) for n in PROGRAMS["branches_and_loops"](minijax)["steps"]] == [
        0,
        8,
        16,
    ]
