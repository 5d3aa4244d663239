# Made from chapters/19d_calls.md by `make chapter`;
# edit the chapter, not this file.
"""Machine code kept on disk, so that the next process finds it ready.

Reference: ``jax_compilation_cache_dir``, ``jax_enable_compilation_cache``.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import minijax
from minijax.interruptions import uninterrupted
from minijax.machine import engine_makers, loaded, object_code
from minijax.settings import _on_or_off, config

ENDINGS = CODE, DRAFT = ".code", ".draft"
DIGEST = hashlib.sha256().digest_size


def default_folder():
    """Return where the user's caches are, or None if nobody knows."""
    with suppress(RuntimeError):
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return str(Path(home, "minijax"))
    return None


def _path_or_none(value):
    return os.fspath(value) if value else None


_folder = os.environ.get("JAX_COMPILATION_CACHE_DIR", default_folder())
_size = os.environ.get("JAX_COMPILATION_CACHE_MAX_SIZE", 2**28)
_enabled = os.environ.get("JAX_ENABLE_COMPILATION_CACHE", "1")
config.define("jax_compilation_cache_dir", _folder, _path_or_none)
config.define("jax_compilation_cache_max_size", _size, int)
config.define("jax_enable_compilation_cache", _enabled, _on_or_off)


def key_of(library):
    """Return the name under which the code of a `Library` is kept.

    It is a hash of all that the code depends on.
    """
    import llvmlite
    from llvmlite import binding

    versions = minijax.__version__, llvmlite.__version__, binding.llvm_version_info
    parts = [library.text, library.recipe(binding), *map(str, versions)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(path):
    """Return the code in a file, or None if there is none, or not all of it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:DIGEST], content[DIGEST:]
    whole = hashlib.sha256(code).digest() == digest
    with suppress(OSError):  # the oldest file is the one not used for longest
        os.utime(path) if whole else path.unlink()
    return code if whole else None


def write(path, code):
    """Put code into a file, all of it or nothing; if that cannot be, do nothing."""
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(DRAFT, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(draft, path)
        except OSError:
            os.unlink(draft)
            raise
        if path.name.startswith("00"):
            make_room(path.parent, config.jax_compilation_cache_max_size)


def make_room(folder, limit):
    """Delete the files that were not used for longest, down to `limit` bytes.

    A negative limit is none.
    """
    files = []
    for entry in os.scandir(folder):
        with suppress(OSError):
            if entry.name.endswith(ENDINGS):
                about = entry.stat()
                files.append((about.st_mtime_ns, about.st_size, entry.path))
    total = sum([size for _, size, _ in files])
    for _, size, path in sorted(files):
        if total <= limit or limit < 0:
            return
        with suppress(OSError):
            os.unlink(path)
        total -= size


def kept_engine(library):
    """Return the engine of a `Library`, with code from disk if it is there."""
    folder = config.jax_compilation_cache_dir
    with uninterrupted():
        if folder is None or not config.jax_enable_compilation_cache:
            return loaded(object_code(library))
        path = Path(folder, key_of(library) + CODE)
        code = read(path)
        if code is None:
            code = object_code(library)
            write(path, code)
        return loaded(code)


engine_makers.append(kept_engine)
