"""One turn of the chapter loop: export, convert and run, then the tests.

The notebook runs on what the lower floors have exported last, so neither the chapters
above nor a mistake in a text below that is being edited can disturb it.

python -m book.tools.chapter 2b
"""

import subprocess
import sys
import tempfile
from pathlib import Path

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


def tests_of(wanted: Floor) -> list[str]:
    """The test files of a chapter: one for each module, one for the chapter."""
    path = find_chapter(wanted)
    names = [
        module.replace("/", "_") for module in Package([read_chapter(path)]).modules
    ]
    names += [name.removesuffix("___init__") for name in names]
    files = [f"tests/test_{name}.py" for name in [*names, path.stem]]
    return [file for file in dict.fromkeys(files) if (ROOT / file).exists()]


def main(wanted: Floor) -> int:
    """Run the loop for one chapter; the exit status of its tests."""
    print("── export ──", flush=True)
    export.main(["--only", str(wanted)])
    print("── notebook ──", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        with files.alone():
            lower = export.below(wanted, ROOT / PACKAGE)
        for path, text in lower.items():
            files.write(Path(folder, PACKAGE, path), text)
        notebook.main([str(wanted), "--package", folder])
    with files.alone():
        pages.write_contents()
    tests = tests_of(wanted)
    print(f"── tests: {' '.join(tests) or 'none yet'} ──", flush=True)
    if not tests:
        return 0
    return subprocess.call([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT)


if __name__ == "__main__":
    try:
        sys.exit(main(floor(sys.argv[1])))
    except BookError as error:
        sys.exit(f"chapter: {error}")
