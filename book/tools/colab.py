"""Run notebooks as a fresh Colab does: with the package's dependencies, without it.

    python book/tools/colab.py WHEELS NOTEBOOK [NOTEBOOK ...]

The address in the first cell of a copy is replaced by that of a wheel in the folder
WHEELS. Both distributions are taken away before each notebook: what it needs, its
first cell has to install. This is a script, run in an environment of its own, from
which it takes nbclient.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

DISTRIBUTIONS = ("minijax-book", "minijax-figures")
ADDRESS = re.compile(r'^    address = "git\+https://github.com/.*"\n', re.MULTILINE)
REQUIREMENT = re.compile(r"(minijax-\w+) @ \{address\}(#[\w=/]+)?")


def without_network(source: str, wheels: Path) -> str:
    """The first cell with wheels in place of the repository.

    Args:
      source: the text of the cell.
      wheels: the folder with one wheel for each distribution.
    Raises:
      ValueError: if the cell does not install each distribution once.
    """
    names = tuple(match[1] for match in REQUIREMENT.finditer(source))
    if names != DISTRIBUTIONS or not ADDRESS.search(source):
        raise ValueError(f"the first cell installs {names}, not {DISTRIBUTIONS}")
    local = ADDRESS.sub('    address = "of a wheel"\n', source)
    return REQUIREMENT.sub(lambda match: _wheel(match[1], wheels), local)


def run(path: Path, wheels: Path) -> None:
    """Run one notebook, in an empty folder."""
    book = nbformat.read(path, as_version=4)
    first = next(cell for cell in book.cells if cell.cell_type == "code")
    first.source = without_network(first.source, wheels)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            book,
            timeout=None,
            extra_arguments=["--log-level=ERROR"],
            skip_cells_with_tag="gpu",
            resources={"metadata": {"path": folder}},
        )
        client.execute()


def forget() -> None:
    """Uninstall both distributions; done when they cannot be imported."""
    pip = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "uninstall", "-y", *DISTRIBUTIONS], check=True)
    code = "import minijax"
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True)
    if not found.returncode:
        sys.exit("colab: minijax can be imported before it is installed")


def main(wheels: str, *notebooks: str) -> int:
    """Run the notebooks; return how many failed."""
    failed = 0
    for path in map(Path, notebooks):
        forget()
        try:
            run(path, Path(wheels))
        except CellExecutionError as error:
            failed += 1
            print(f"{path.name}: {error}")
        else:
            print(f"{path.name}: runs", flush=True)
    return failed


def _wheel(name: str, wheels: Path) -> str:
    """The requirement that pip meets with the wheel of a distribution."""
    (found,) = wheels.resolve().glob(f"{name.replace('-', '_')}-*.whl")
    return f"{name} @ {found.as_uri()}"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: colab.py WHEELS NOTEBOOK [NOTEBOOK ...]")
    sys.exit(bool(main(*sys.argv[1:])))
