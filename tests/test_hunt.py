"""A share of the hunt, and what it makes of a fault."""

import json
import subprocess
import sys

import pytest

from tests import edge_programs, hunt, mutants
from tests.commands import LONG, blocks
from tests.control_sources import SourceCase


@pytest.mark.parametrize("block", blocks(2, 6))
def test_programs_at_edges(block):
    count, faults = hunt.Block("edges", 40 * block, "").run(40)
    assert (count, faults) == (40, [])


@pytest.mark.parametrize("family", sorted({*hunt.FAMILIES} - {"edges"}))
def test_other_families(family):
    """Each has tests of its own; here is what runs them in a process."""
    some = 6 if LONG and family != "cold" else 1
    count, faults = hunt.Block(family, 5, "").run(some)
    assert (count, faults) == (some, [])


def test_a_fault_is_made_small():
    with mutants.wide_row_end():
        case = next(
            case for case in map(edge_programs.drawn, range(60)) if case.problems()
        )
        while smaller := next((x for x in case.smaller() if x.problems()), None):
            case = smaller
        assert len(case.lines) == 1 and case.ways == ("plain",)
        assert "def program(" in case.script()
        done = subprocess.run(
            [sys.executable, "-c", case.script()], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "[]"  # there the fault is mended


def test_a_program_with_loops_is_made_small():
    source = """def program(a):
    v1 = jnp.sin(a)
    def f2(c):
        v3 = c * 2
        return v3
    v4 = f2(v1)
    v5 = a + 1
    return [v1, v4, v5]"""
    case, sizes = SourceCase(source, {"a": edge_programs.np.ones(3)}, False), set()
    for each in case.smaller():
        sizes.add(each.source.count("\n"))
        assert each.problems() == []
    assert sizes == {7, 4, 6}


def test_a_crash_is_found_and_said(monkeypatch):
    code = "import os; print('seed 5'); print('seed 6', flush=True); os.abort()"
    monkeypatch.setattr(hunt.Block, "command", [sys.executable, "-c", code])
    monkeypatch.setattr(hunt, "first_that_fails", lambda cases, environment: None)
    count, [fault] = hunt.Block("edges", 5, "plain").run()
    assert count == 2
    assert "seed 6: the process ended with -6" in fault and "MINIJAX_CPU=plain" in fault
    assert "def program(" in fault or "Case(" in fault


def test_a_problem_is_said_with_what_runs_it_again(monkeypatch):
    said = f"PROBLEM {json.dumps(['all is wrong', ''])}"
    code = f"print('seed 5'); print({said!r})"
    monkeypatch.setattr(hunt.Block, "command", [sys.executable, "-c", code])
    count, [fault] = hunt.Block("kernels", 5, "").run()
    assert count == 1 and "all is wrong" in fault


def test_the_command_runs_until_the_time_is_over(capsys):
    faults, counts = hunt.hunt(0.1, 7, ["memory"], 1)
    assert faults == [] and counts["memory"] == hunt.BLOCK
