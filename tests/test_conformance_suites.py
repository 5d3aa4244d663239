"""What is recorded of test-suites of other packages, and how their tests are chosen."""

from zlib import crc32

import pytest

from book.tools import suites
from tests.conformance.plugins import one_of
from tests.conformance.suites import SUITES

ROWS = suites.rows()


def test_what_is_recorded_is_of_the_versions_that_are_run():
    assert {row.name: row.version for row in ROWS} == {
        row.name: SUITES[row.name].version for row in ROWS
    }


def test_of_what_jax_passes_98_of_100_pass():
    assert sum(row.passed for row in ROWS) >= 0.98 * sum(row.of for row in ROWS)


def test_no_suite_is_slower_and_the_mean_is_a_fifth():
    assert all(row.ours < row.theirs for row in ROWS)
    assert suites.mean_ratio(ROWS) <= 0.2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_suite_has_tests_that_pass(row):
    assert 0.9 * row.of <= row.passed <= row.of > 0


class Item:
    def __init__(self, name):
        self.name = name


class Config:
    """Stands for pytest's: it is told of the tests that are left out."""

    def __init__(self):
        self.left, self.hook = [], self

    def pytest_deselected(self, items):
        self.left += items


def test_a_choice_of_few_tests_is_a_part_of_a_larger_choice(monkeypatch):
    names = [f"test_sum[jax.numpy.float{n}]" for n in range(400)]
    chosen = {}
    for number in 1, 4, 16:
        monkeypatch.setenv("ONE_OF", str(number))
        items, config = [Item(name) for name in names], Config()
        one_of.pytest_collection_modifyitems(config, items)
        chosen[number] = {item.name for item in items}
        assert len(items) + len(config.left) == 400
    assert chosen[16] < chosen[4] < chosen[1] == {*names}
    assert all(crc32(name.encode()) % 4 == 0 for name in chosen[4])


def test_a_test_is_chosen_alike_whoever_made_its_parameter():
    ours = "test_sum[<class 'minijax.numpy.float32'>]"
    assert one_of.as_of_jax(ours) == "test_sum[<class 'jax.numpy.float32'>]"
