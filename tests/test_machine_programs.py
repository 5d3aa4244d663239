"""The command that runs random programs on every machine, and a few of them."""

import subprocess
import sys

import pytest

from tests import machine_programs
from tests.commands import LONG

DIES_AT_1 = "import os; print('seed 0', flush=True); print('seed 1', flush=True)"


@pytest.mark.parametrize("seed", [0, 12] if LONG else [0])
def test_random_programs_agree(seed):
    assert machine_programs.supervise(seed, 12, ["cpu"]) == {}


# Stores of nothing; a module that LLVM breaks; rows kept across their vectors; an index
# that NumPy refuses; halves in wide numbers.
WENT_WRONG = [760, 877, 927, 6126, 1394, 2606]


def test_what_went_wrong_once_is_right():
    code = "from tests.machine_programs import run_block\n"
    code += f"for seed in {WENT_WRONG}: run_block(seed, 1, ['cpu'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [x for n in WENT_WRONG for x in ("seed", str(n))]


def test_a_crash_is_found_and_the_rest_is_run(monkeypatch):
    run, blocks = subprocess.run, []

    def dying(command, **options):
        first = int(command[command.index("--seed") + 1])
        blocks.append(first)
        code = f"{DIES_AT_1}; os.abort()" if first == 0 else f"print('seed {first}')"
        return run([sys.executable, "-c", code], **options)

    monkeypatch.setattr(machine_programs.subprocess, "run", dying)
    problems = machine_programs.supervise(0, 5, ["cpu"])
    assert [*problems] == [1] and blocks == [0, 2]
    assert "the process ended with -6" in problems[1][0]


def test_a_wrong_result_is_found(monkeypatch):
    program = machine_programs.drawn(4)
    found = [x + 1 for x in map(program.values.get, program.wanted)]
    assert [*program.each_line(found)]
