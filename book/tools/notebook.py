"""Make an executed notebook from each chapter's text.

    python -m book.tools.notebook            all chapters: convert and run
    python -m book.tools.notebook 3 5        chapters 3 and 5
    python -m book.tools.notebook --convert  convert only, keeping stored outputs
    python -m book.tools.notebook --check    exit 1 if a notebook differs from its text
    python -m book.tools.notebook --clocks 3 what clocks said is measured again, too
    python -m book.tools.notebook 3 --package DIR --dry-run
                                             run on the package in DIR, store nothing

A notebook runs on what the lower floors have exported last, where nbval runs it too.
Ids of cells are hashes of their text, so an unchanged cell keeps its id and its
outputs wherever it moves. Cells tagged `gpu` run only where there is a GPU; elsewhere
their stored outputs stay.
"""

import argparse
import ast
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from book.helper.amending import MARK, USED, pieces
from book.tools import folds
from book.tools.export import write_lower_floors
from book.tools.source import (
    CHAPTERS,
    ROOT,
    BookError,
    Chapter,
    after_front_matter,
    cell_ids,
    chapter_paths,
    find_chapter,
    floor,
    floor_of,
    read_chapter,
)
from book.tools.syntax import without_magics

SECONDS_PER_CELL = 300
HIDDEN = {"hide-cell", "hide-input"}  # tags fold in the book; metadata in notebooks
CLOCKED = "nbval-ignore-output"  # what a clock said stays as it was recorded
IDLE = 0.85  # of the processors' time, at least, before clocks are believed
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ENVIRONMENT = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "default",
}
Notebook = nbformat.NotebookNode


def convert(text: Path) -> Notebook:
    """The notebook of a chapter's text, without outputs.

    Args:
      text: path of the Markdown file.
    Returns:
      A notebook whose ids depend on nothing but the text.
    Raises:
      BookError: a folded cell without a title.
    """
    lines = text.read_text(encoding="utf-8").split("\n")
    body = "\n".join(lines[after_front_matter(lines) :])
    book = jupytext.reads(body, fmt="md:myst")
    for cell in book.cells:
        cell.source = as_magic(cell.source.strip("\n"))
        if HIDDEN & {*cell.metadata.get("tags", ())}:
            cell.metadata.update(cellView="form", jupyter={"source_hidden": True})
    ids = cell_ids([(cell.cell_type, cell.source) for cell in book.cells])
    for cell, key in zip(book.cells, ids, strict=True):
        cell.id = key
    add_titles(book, read_chapter(text))
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL})
    book.nbformat, book.nbformat_minor = 4, 5
    return book


def as_magic(source: str) -> str:
    """The text of a cell as a notebook has it: a cell that amends acts when it runs."""
    return re.sub(r"^#\| amend ", "%%amend ", source)


def add_titles(book: Notebook, chapter: Chapter) -> None:
    """Write the title of each folded cell where myst-nb looks for it."""
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for made, cell in zip(code, chapter.cells, strict=True):
        made.metadata.pop("title", None)
        if folds.is_folded(cell):
            prompt = folds.title(chapter, cell)
            made.metadata["mystnb"] = {
                "code_prompt_show": prompt,
                "code_prompt_hide": prompt,
            }


def keep_outputs(book: Notebook, stored: Path, tag: str = "") -> None:
    """Give unchanged cells the outputs which they have in the stored notebook.

    Args:
      tag: if it is given, only cells with this tag.
    """
    if not stored.exists():
        return
    cells = {cell.id: cell for cell in nbformat.read(stored, as_version=4).cells}
    for cell in book.cells:
        old = cells.get(cell.id)
        wanted = not tag or tag in cell.metadata.get("tags", ())
        if tag and old is not None and not old.get("outputs"):
            continue  # it was stored before it ran: `--convert` does that
        if wanted and cell.cell_type == "code" and old and old.source == cell.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count


def keep_clocked(book: Notebook, stored: Path) -> None:
    """Give cells that time something their stored outputs: all those of a run, or none.

    A cell may print again what an earlier one has measured. If one of the two is new,
    its output is of this run, and so the other's must be.
    """
    if not stored.exists():
        return
    measured = [list(cell.get("outputs", ())) for cell in book.cells]
    known = {cell.id for cell in nbformat.read(stored, as_version=4).cells}
    keep_outputs(book, stored, CLOCKED)
    for places in clocked_groups(book):
        if any(book.cells[place].id not in known for place in places):
            for place in places:
                book.cells[place].outputs = measured[place]


def clocked_groups(book: Notebook) -> list[set[int]]:
    """The places of cells that time something, with those whose variables they read."""
    groups: list[tuple[set[int], set[str]]] = []
    for place, cell in enumerate(book.cells):
        if CLOCKED in cell.metadata.get("tags", ()):
            made, read = _names(cell.source)
            joined = [group for group in groups if group[1] & (read - made)]
            places = {place}.union(*[others for others, _ in joined])
            made = made.union(*[names for _, names in joined])
            groups = [group for group in groups if group not in joined]
            groups.append((places, made))
    return [places for places, _ in groups]


def _names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell makes, by assignment or definition, and those it reads."""
    nodes = [*ast.walk(ast.parse(without_magics(source)))]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    made |= {node.name for node in nodes if isinstance(node, FUNCTION)}
    return made, {name.id for name in names if isinstance(name.ctx, ast.Load)}


def execute(book: Notebook, package: Path = ROOT) -> None:
    """Run the cells in place, in a fresh kernel in `chapters/`.

    Args:
      book: the notebook.
      package: the folder which holds the `minijax` to run on.
    """
    path = os.pathsep.join(dict.fromkeys([str(package), str(ROOT)]))
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
    client = NotebookClient(
        book,
        timeout=SECONDS_PER_CELL,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
        skip_cells_with_tag="no-run" if has_gpu() else "gpu",
        resources={"metadata": {"path": str(CHAPTERS)}},
    )
    with tempfile.NamedTemporaryFile(mode="r") as used:
        client.execute(env={**environment, USED: used.name})
        ran = used.read().split()
    if unused := [name for name in amended(book) if name not in ran]:
        raise BookError(f"no cell uses the new version of {', '.join(unused)}")


def amended(book: Notebook) -> list[str]:
    """The functions and methods of which a notebook has new versions."""
    found = []
    for cell in book.cells:
        head, _, code = cell.source.partition("\n")
        if head.startswith("%%amend ") and (mark := MARK.fullmatch(head[8:])):
            parts = pieces(code, mark["names"].split(", "))
            found += [p.name for p in parts if p.name and isinstance(p.node, FUNCTION)]
    return found


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def tidy(book: Notebook, package: Path = ROOT) -> None:
    """Drop what changes from run to run: numbers, machine paths, metadata."""
    book.metadata = nbformat.from_dict({"kernelspec": KERNEL})
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        cell.metadata.pop("execution", None)
        cell.execution_count = number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
            if "traceback" in output:
                output.traceback = [
                    without_paths(line, package) for line in output.traceback
                ]


def without_paths(text: str, package: Path = ROOT) -> str:
    """A line of a traceback with paths below the repository or the library."""
    home = str(Path.home())
    places = [r"[^\s\"]*/site-packages/", r"[^\s\"]*/lib/python3\.\d+/"]
    for folder in dict.fromkeys([f"{package}/", f"{ROOT}/"]):
        places += [re.escape(folder), re.escape(folder.replace(home, "~", 1))]
    return re.sub("|".join(places), "", text)


def has_gpu() -> bool:
    """Whether an NVIDIA card is there to run the cells tagged `gpu`."""
    return shutil.which("nvidia-smi") is not None


def disagreement(text: Path) -> str:
    """How the stored notebook differs from the text; empty if it does not."""
    stored = text.with_suffix(".ipynb")
    if not stored.exists():
        return f"{stored.name} is not there"
    fault = first_difference(convert(text), nbformat.read(stored, as_version=4))
    return fault and f"{stored.name}: {fault}"


def first_difference(new: Notebook, old: Notebook) -> str:
    """How a stored notebook differs from the one that the text makes; empty if not."""
    if new.metadata != old.metadata:
        return "metadata other than the kernel's name"
    for number, pair in enumerate(zip(new.cells, old.cells, strict=False), start=1):
        if any(pair[0].get(k) != pair[1].get(k) for k in _COMPARED):
            return f"cell {number} is not the text's"
        if pair[1].cell_type == "code" and pair[1].execution_count is None:
            return f"cell {number} was never run"
    if len(new.cells) != len(old.cells):
        return f"{len(old.cells)} cells, {len(new.cells)} in the text"
    return ""


_COMPARED = ("cell_type", "source", "metadata", "id")


def process(text: Path, options: argparse.Namespace) -> None:
    """Convert one chapter and, unless told otherwise, run it and store it."""
    start = time.monotonic()
    print(f"{text.stem} …", end=" ", flush=True)
    stored, book = text.with_suffix(".ipynb"), convert(text)
    keep_outputs(book, stored)
    if not options.convert:
        with _package_for(text, options.package) as package:
            if options.clocks and (share := idle()) < IDLE:
                raise BookError(f"the machine is busy: {1 - share:.0%} of its time")
            _run(book, text, package)
            if not options.clocks:
                keep_clocked(book, stored)
            tidy(book, package)
    if not options.dry_run:
        nbformat.write(book, stored)
    print(f"{time.monotonic() - start:.1f} s", flush=True)


def idle(seconds: float = 2.0) -> float:
    """The share of the processors' time in which they had nothing to do."""
    before = _ticks()
    time.sleep(seconds)
    spent = [now - then for now, then in zip(_ticks(), before, strict=True)]
    return (spent[3] + spent[4]) / max(sum(spent), 1)


def _ticks() -> list[int]:
    """What Linux has counted since it began: user, nice, system, idle, waiting."""
    try:
        line = Path("/proc/stat").read_text().split("\n")[0]
    except OSError:
        return [0, 0, 0, 0, 0]
    return [int(word) for word in line.split()[1:6]]


@contextmanager
def _package_for(text: Path, given: Path | None) -> Iterator[Path]:
    if given:
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        write_lower_floors(floor_of(text), Path(folder))
        yield Path(folder)


def _run(book: Notebook, text: Path, package: Path) -> None:
    try:
        execute(book, package)
    except (CellExecutionError, CellTimeoutError, BookError) as error:
        print("failed", flush=True)
        why = without_paths(str(error), package)
        raise BookError(f"chapters/{text.name}: {why}") from None


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("floor", type=floor, nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--clocks", action="store_true")
    parser.add_argument("--convert", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--package", type=Path)
    options = parser.parse_args(arguments)
    texts = [find_chapter(wanted) for wanted in options.floor] or chapter_paths()
    if options.check:
        found = [trouble for text in texts if (trouble := disagreement(text))]
        print("\n".join(found) or f"{len(texts)} notebooks agree with their texts")
        return bool(found)
    for text in texts:
        process(text, options)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"notebook: {error}")
