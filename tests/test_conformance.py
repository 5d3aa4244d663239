"""The command that runs test-suites of others: its counts and its skip list."""


import pytest

from tests.conformance import __main__ as command
from tests.conformance.suites import Suite

ENTRY = {"version": "1", "passed": 3, "not measured": [], "not passed": ["f::C::d"]}


@pytest.fixture
def suite(monkeypatch):
    skips = {"a reason": ["*::b"]}
    monkeypatch.setitem(command.SUITES, "some", Suite("1", "*.py", skips=skips))


def outcomes(**found):
    return {f"f::C::{name}": outcome for name, outcome in found.items()}


def test_passes_are_counted_beside_those_of_jax(suite, capsys):
    found = outcomes(a="passed", b="no such name", c="it differs\nby one", d="wrong")
    assert command.compared("some", found, ENTRY)
    told = capsys.readouterr().out
    assert "1 f::C::c: it differs\n" in told and "wrong" not in told
    assert "1 passed of 3 that JAX passes (33.3 %), 1 skipped with a reason" in told


def test_a_skipped_test_that_passes_is_reported(suite, capsys):
    assert not command.compared("some", outcomes(b="passed"), ENTRY)
    assert "in the skip list, and passes: f::C::b" in capsys.readouterr().out


def test_files_that_were_not_run_over_jax_count_in_full(suite, capsys):
    entry = {**ENTRY, "passed": 0, "not measured": ["f"]}
    command.compared("some", outcomes(a="passed", c="wrong"), entry)
    assert "1 passed of 2 that JAX passes" in capsys.readouterr().out


def test_recorded_suites_are_those_that_are_run():
    entries = command.recorded()
    assert {name: entry["version"] for name, entry in entries.items()}.items() <= {
        name: suite.version for name, suite in command.SUITES.items()
    }.items()
