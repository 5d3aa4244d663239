"""One turn of the chapter loop: export, convert and run, then the checks.

The notebook runs on what the lower floors have exported last, so neither the chapters
above nor a mistake in a text below that is being edited can disturb it.

python -m book.tools.chapter 3
"""

import subprocess
import sys

from book.tools import export, files, notebook, pages
from book.tools.modules import Package
from book.tools.source import (
    PACKAGE,
    ROOT,
    BookError,
    Floor,
    find_chapter,
    floor,
    read_chapter,
)

LAWS = ("chapters", "source", "spine", "style")  # asked of one chapter


def modules_of(wanted: Floor) -> list[str]:
    """The modules which the chapter exports, as paths without `.py`."""
    return list(Package([read_chapter(find_chapter(wanted))]).modules)


def tests_of(wanted: Floor) -> list[str]:
    """The test files of a chapter: those of its modules, and one for the chapter."""
    names = [module.replace("/", "_") for module in modules_of(wanted)]
    names += [name.removesuffix("___init__") for name in names]
    names += [find_chapter(wanted).stem]
    found = (ROOT / "tests").glob("test_*.py")
    own = tuple(f"test_{name}{end}" for name in names for end in (".py", "_"))
    return sorted(f"tests/{path.name}" for path in found if path.name.startswith(own))


def run_notebook(wanted: Floor) -> None:
    """Convert and run the chapter on what the lower floors have exported last."""
    notebook.main([str(wanted)])
    with files.alone():
        pages.write_contents()


def checks(wanted: Floor) -> dict[str, list[str]]:
    """What is asked of the chapter alone: arguments of Python, by title."""
    made = [f"{PACKAGE}/{module}.py" for module in modules_of(wanted)]
    text = find_chapter(wanted)
    found = {"lint": ["ruff", "check", "-q", *made, f"chapters/{text.stem}.ipynb"]}
    if tests_of(wanted):
        found["tests"] = ["pytest", "-q", *tests_of(wanted)]
    laws = [f"tests/laws/test_{name}.py" for name in LAWS]
    found["laws"] = ["pytest", "-q", *laws, "-k", " or ".join([text.stem, *made])]
    return found


def main(wanted: Floor) -> int:
    """Run the loop for one chapter; 1 if a check fails."""
    print("── export ──", flush=True)
    export.main(["--only", str(wanted)])
    print("── notebook ──", flush=True)
    run_notebook(wanted)
    failed = False
    for title, arguments in checks(wanted).items():
        print(f"── {title} ──", flush=True)
        failed |= bool(subprocess.call([sys.executable, "-m", *arguments], cwd=ROOT))
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main(floor(sys.argv[1])))
    except BookError as error:
        sys.exit(f"chapter: {error}")
