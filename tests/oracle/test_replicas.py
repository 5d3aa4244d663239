"""Programs on eight devices, beside JAX: values, dtypes, shardings, texts, errors."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

# Where ours differ. JAX cannot transpose some exchanges, or writes an exchange with
# more equations; a branch that devices take or not holds no exchange in ours, so
# operands vary before it.
OTHERWISE = {
    "slope scatter", "slope exchange 01",
    "text: exchange 01 True", "text: exchange 01 False", "text: choice",
    "text: slope of choice",
}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Return what was found in ours and in theirs, each in a process of its own."""
    folder, both = tmp_path_factory.mktemp("replicas"), []
    for library in ("minijax", "jax"):
        path = folder / f"{library}.pickle"
        command = [sys.executable, "-m", "tests.replica_programs", library, str(path)]
        flags = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
        subprocess.run(command, check=True, timeout=300, env=os.environ | flags)
        both.append(pickle.loads(path.read_bytes()))
    return both


def differ(ours, theirs):
    """Say whether two results differ: arrays, texts, or the classes of errors."""
    if not all(isinstance(x, tuple) for x in ours + theirs):
        texts = "{" in "".join(map(str, ours + theirs))
        ours, theirs = list(map(str, ours)), list(map(str, theirs))
        common = {*ours} & {*theirs} - {"Exception", "BaseException", "object"}
        return ours != theirs if texts else not common
    return len(ours) != len(theirs) or any(map(_arrays_differ, ours, theirs))


def _arrays_differ(one, two):
    same = one[0] == two[0] and one[2] == two[2] and one[1].shape == two[1].shape
    return not same or not np.allclose(one[1], two[1], rtol=1e-3, atol=1e-4)


def test_programs_are_those_of_jax(found):
    ours, theirs = found
    assert ours.keys() == theirs.keys() and len(ours) > 200
    wrong = [k for k in ours if k not in OTHERWISE and differ(ours[k], theirs[k])]
    assert not wrong, {k: (ours[k], theirs[k]) for k in wrong[:3]}


def test_comparison_notices(found):
    ours, theirs = found
    names = "slope scatter", "text: choice"
    assert all(differ(ours[name], theirs[name]) for name in names)
