"""The command that runs test-suites of others: counts, skip list, choices, records."""

from zlib import crc32

import pytest

from book.tools import suites
from tests.conformance import __main__ as command
from tests.conformance.plugins import one_of
from tests.conformance.suites import Suite

ENTRY = {"version": "1", "passed": 3, "not passed": ["f.C::d"]}
ROWS = suites.rows()


@pytest.fixture
def suite(monkeypatch):
    skips = {"a reason": ["*::b"]}
    monkeypatch.setitem(command.SUITES, "some", Suite("1", "*.py", skips=skips))


def outcomes(**found):
    return {f"f.C::{name}": outcome for name, outcome in found.items()}


def test_passes_are_counted_beside_those_of_jax(suite, capsys):
    found = outcomes(a="passed", b="no such name", c="it differs\nby one", d="wrong")
    assert command.compared("some", found, ENTRY) == (1, [])
    told = capsys.readouterr().out
    assert "1 f.C::c: it differs\n" in told and "wrong" not in told
    assert "1 passed of 3 that JAX passes (33.3 %), 1 skipped with a reason" in told


def test_a_skipped_test_that_passes_is_reported(suite, capsys):
    assert command.compared("some", outcomes(b="passed"), ENTRY) == (1, ["f.C::b"])
    assert "in the skip list, and passes: f.C::b" in capsys.readouterr().out


def test_recorded_suites_are_those_that_are_run():
    entries = command.recorded()
    assert {name: entry["version"] for name, entry in entries.items()}.items() <= {
        name: suite.version for name, suite in command.SUITES.items()
    }.items()


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
