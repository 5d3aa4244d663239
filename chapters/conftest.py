"""Notebooks run on what the floors below them have exported, and on nothing else.

nbval compares their outputs; this file chooses the package that it compares them on.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from book.tools.export import write_lower_floors
from book.tools.source import ROOT, floor_of


@cache
def lower_floors(path: Path) -> str:
    """A folder with the package that this notebook may use, until we are done."""
    folder = tempfile.mkdtemp(prefix="minijax-floors-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_lower_floors(floor_of(path), Path(folder))
    return folder


@pytest.hookimpl(tryfirst=True)  # before nbval starts the kernel of the notebook
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the kernel that is started next find this package first."""
    folder = lower_floors(item.path)
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, str(ROOT)])
