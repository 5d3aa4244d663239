"""The command that runs test-suites of others: its skip list, and the name jax."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import __main__ as command
from tests.conformance.suites import Suite

HERE = Path(command.__file__).parent
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
    assert {name: entry["version"] for name, entry in entries.items()} == {
        name: suite.version for name, suite in command.SUITES.items()
    }


PROGRAM = """
import jax, jax.numpy as jnp
from jax import lax
from jax.scipy import special
import minijax.numpy
assert jnp is minijax.numpy is jax.numpy and special.erf(0.0) == 0
try:
    import jax._src.core
except ModuleNotFoundError as error:
    print(error)
"""


def test_jax_is_a_name_of_minijax():
    path = os.pathsep.join([str(HERE / "ours"), str(HERE.parents[1])])
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "No module named 'jax._src.core'\n"
