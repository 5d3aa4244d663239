"""Write the files that all chapters share, while other authors work beside us."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from book.tools.source import ROOT, BookError

LOCK = ROOT / "_build" / "lock"
PATIENCE = 120.0


@contextmanager
def alone(lock: Path = LOCK, patience: float = PATIENCE) -> Iterator[None]:
    """Hold a lock file while shared files are read and written.

    Raises:
      BookError: somebody else holds it for longer than `patience` seconds.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w", encoding="utf-8") as file:
        end = time.monotonic() + patience
        while not _taken(file.fileno()):
            if time.monotonic() > end:
                raise BookError(f"another make has held {lock.name} for {patience} s")
            time.sleep(0.05)
        yield


def write(path: Path, text: str) -> bool:
    """Write a text all at once, if it differs from what is there; whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return True


def keep_compiled(original: Path, copy: Path) -> None:
    """Give a copy what Python has compiled the original to, if both are the same."""
    there, here = (Path(cache_from_source(path)) for path in (original, copy))
    if there.exists() and original.read_bytes() == copy.read_bytes():
        here.parent.mkdir(exist_ok=True)
        shutil.copyfile(there, here)
        shutil.copystat(original, copy)  # Python looks at the time of the source


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
