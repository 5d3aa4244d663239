"""One turn of the chapter loop: export, convert and run, then the tests.

python -m book.tools.chapter 3
"""

import subprocess
import sys

from book.tools import export, notebook, pages
from book.tools.modules import Package
from book.tools.source import ROOT, BookError, find_chapter, read_chapter


def tests_of(number: int) -> list[str]:
    """The test files of a chapter: one for each module, one for the chapter."""
    path = find_chapter(number)
    names = [
        module.replace("/", "_") for module in Package([read_chapter(path)]).modules
    ]
    names += [name.removesuffix("___init__") for name in names]
    files = [f"tests/test_{name}.py" for name in [*names, path.stem]]
    return [file for file in dict.fromkeys(files) if (ROOT / file).exists()]


def main(number: int) -> int:
    """Run the loop for one chapter; the exit status of its tests."""
    print("── export ──", flush=True)
    export.main(["--only", str(number)])
    print("── notebook ──", flush=True)
    notebook.main([str(number)])
    pages.write_contents()
    files = tests_of(number)
    print(f"── tests: {' '.join(files) or 'none yet'} ──", flush=True)
    if not files:
        return 0
    return subprocess.call([sys.executable, "-m", "pytest", "-q", *files], cwd=ROOT)


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1])))
    except BookError as error:
        sys.exit(f"chapter: {error}")
