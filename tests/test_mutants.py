"""The batteries find the faults of `tests.mutants`, drawing what they always draw."""

import pytest

from tests import edge_programs, kernel_cases, mutants, vector_cases

SEEDS = range(60)  # the first share of `tests.test_hunt`


def wrong_kernels(chance=vector_cases.RowChance):
    """What is wrong with the kernels that the tests of schedules draw."""
    met = kernel_cases.of_random_kernels(19, 60, chance)
    library = vector_cases.vector_library(vector_cases.target_of(""))
    return kernel_cases.differences(met, library)


def test_a_wide_row_end_is_found_in_programs():
    with mutants.wide_row_end():
        found = next(filter(None, (edge_programs.drawn(n).problems() for n in SEEDS)))
    assert any("written" in problem for problem in found)


def test_a_wide_row_end_is_found_in_kernels():
    with mutants.wide_row_end():
        assert wrong_kernels()


AT_PLACES = [mutants.limits_too_far, mutants.running_folds_begin_anew]


@pytest.mark.parametrize("mutant", AT_PLACES)
def test_faults_at_computed_places_are_found(mutant):
    with mutant():
        assert wrong_kernels(vector_cases.LongPlaces)


@pytest.mark.parametrize("chance", [vector_cases.RowChance, vector_cases.LongPlaces])
def test_without_a_mutant_nothing_is_found(chance):
    assert not wrong_kernels(chance)
