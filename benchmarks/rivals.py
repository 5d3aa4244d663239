"""Who is measured beside minijax and JAX: ourselves without `jit`, NumPy, compilers."""

import importlib
import signal
from contextlib import contextmanager

import numba_rows
import torch_rows
from rows import Eager, as_package
from side_by_side import refuse_different_arrays

TITLES = {
    "eager": "/ eager", "numpy": "/ NumPy", "numba": "/ Numba",
    "torch": "/ PyTorch", "torch.compile": "/ compile",
}  # fmt: skip


def installed(threads):
    """Return those of Numba and PyTorch that are there, set to so many threads."""
    found = {}
    for name in ("numba", "torch"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError:
            print(f"without {name}, which is not installed")
    if "torch" in found:
        found["torch"].set_num_threads(threads)
    if "numba" in found:
        NUMBA.update(numba_rows.functions(found["numba"]))
    return found


NUMBA = {}


def functions(name, row, package, ours, compilers):
    """Return functions without arguments by the names of the rivals in a row."""
    found = {}
    if row.results and row.threads == 1:
        found["eager"] = row.make(Eager(package))
    if row.by_numpy:
        found["numpy"] = row.make(as_package)
    if name in NUMBA:
        found["numba"] = NUMBA[name]
    if "torch" in compilers:
        expected = package.tree_util.tree_leaves(ours())
        found |= _of_torch(name, compilers["torch"], expected)
    return found


def _of_torch(name, torch, expected):
    found = {}
    for rival, make in torch_rows.rivals(torch, name).items():
        try:
            with limited(torch_rows.SECONDS_TO_COMPILE):
                function = make()
                results = torch_rows.as_numpy(function())
        except Exception as error:  # what a compiler cannot do is no row of ours
            print(f"{name}: without {rival}, {type(error).__name__}")
            continue
        refuse_different_arrays(name, rival, expected, results)
        found[rival] = function
    return found


@contextmanager
def limited(seconds):
    """Raise a `TimeoutError` after so many seconds, where the system has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_):
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
