"""Machine code kept on disk, so that the next process finds it ready.

Each file holds a hash of its key and its code, which only this user can make.

Reference: ``jax_compilation_cache_dir``, ``jax_enable_compilation_cache``.
"""

# Made from chapters/26_calls_upper.md by `make chapter`;
# edit the chapter, not this file.

import os
import re
import warnings
from contextlib import suppress

import minijax
from minijax.arrays.dtypes import _on_or_off, config
from minijax.dispatch.interrupts import defer_interrupts
from minijax.dispatch.private_files import (
    TEMPORARY_SUFFIX,
    Folder,
    UntrustedFile,
    cache_base_folder,
    is_owned_file,
    read_secret,
)
from minijax.kernels.ir import sha256
from minijax.llvm.compiler import engine_factory, load_object_code, object_code


def object_cache_key(library):
    """Return the name under which the code of a `Library` is kept.

    It is a hash of all that the code depends on.
    """
    import llvmlite
    from llvmlite import binding

    versions = minijax.__version__, llvmlite.__version__, binding.llvm_version_info
    parts = [library.text, library.recipe(binding), *map(str, versions)]
    return sha256("\0".join(parts).encode()).hexdigest()


CODE_SUFFIX = ".minijax"
FILE_MAGIC = b"minijax machine code, 2\n"
CODE_OFFSET = len(FILE_MAGIC) + sha256().digest_size
LARGEST = 2**28
CACHE_FILE_NAME = re.compile(
    rf"[0-9a-f]{{64}}{re.escape(CODE_SUFFIX)}(\.[0-9a-f]{{16}}{TEMPORARY_SUFFIX})?"
)
FORGOTTEN = 24 * 3600  # seconds after which no process is writing a draft any more


def default_folder():
    """Return where the user's caches are, or None if that is unknown."""
    with suppress(OSError):
        return os.path.join(cache_base_folder("XDG_CACHE_HOME", ".cache"), "minijax")
    return None


def _path_or_none(value):
    return os.fsdecode(value) if value else None


_folder = os.environ.get("JAX_COMPILATION_CACHE_DIR", default_folder())
_size = os.environ.get("JAX_COMPILATION_CACHE_MAX_SIZE", 2**28)
_enabled = os.environ.get("JAX_ENABLE_COMPILATION_CACHE", "1")
config.define("jax_compilation_cache_dir", _folder, _path_or_none)
config.define("jax_compilation_cache_max_size", _size, int)
config.define("jax_enable_compilation_cache", _enabled, _on_or_off)
_said: set = set()


def warn_no_cache(error, variable):
    """Warn, once, of why there is no cache."""
    text = str(error)
    if text not in _said:
        _said.add(text)
        warnings.warn(
            f"Machine code is not kept on disk: {text}. {variable} may name another "
            "folder; JAX_ENABLE_COMPILATION_CACHE=0 does without.",
            stacklevel=2,
        )


def open_cache_folder(path):
    """Return the open `Folder` of a cache; if others can change it, say so and raise.

    A folder that is not there and cannot be made raises as well, and nothing is said.
    """
    try:
        return Folder(path)
    except UntrustedFile as error:
        warn_no_cache(error, "JAX_COMPILATION_CACHE_DIR")
        raise


def secret():
    """Return this user's secret; raise an `OSError`, and say so, if there is none."""
    try:
        state = cache_base_folder("XDG_STATE_HOME", ".local", "state")
        return read_secret(os.path.join(state, "minijax"))
    except OSError as error:
        warn_no_cache(error, "XDG_STATE_HOME")
        raise


def file_header(key, code):
    """Return what the file of a key begins with; only this user can make it."""
    import hmac

    made = hmac.new(secret(), FILE_MAGIC + key.encode(), "sha256")
    made.update(code)
    return FILE_MAGIC + made.digest()


def read_object(path, key):
    """Return the code kept in a folder under a key, or None if none is ours."""
    from hmac import compare_digest

    with defer_interrupts(), suppress(OSError), open_cache_folder(path) as folder:
        content = folder.read(key + CODE_SUFFIX, LARGEST)
        start, code = content[:CODE_OFFSET], content[CODE_OFFSET:]
        if compare_digest(start, file_header(key, code)):
            with suppress(OSError):  # the disk may be for reading only
                os.utime(
                    **folder.at(key + CODE_SUFFIX)
                )  # used: the oldest file goes first
            return code
    return None


def write_object(path, key, code):
    """Keep code in a folder under a key; if that cannot be, do nothing."""
    with defer_interrupts(), suppress(OSError), open_cache_folder(path) as folder:
        folder.write(key + CODE_SUFFIX, file_header(key, code) + code)
        if key.startswith("00"):
            evict_lru(folder, config.jax_compilation_cache_max_size)


def list_cache_entries(folder):
    """Return the age, the size and the name of the cache's files; delete old drafts."""
    found, now = [], folder.stat(".").st_mtime  # by the clock of the disk
    for name in filter(CACHE_FILE_NAME.fullmatch, folder.names()):
        with suppress(OSError):
            about = folder.stat(name)
            if not is_owned_file(about):
                continue
            if name.endswith(CODE_SUFFIX):
                found.append((about.st_mtime_ns, about.st_size, name))
            elif now - about.st_mtime > FORGOTTEN:
                os.unlink(**folder.at(name))
    return sorted(found)


def evict_lru(folder, limit):
    """Delete the files that were not used for longest, down to `limit` bytes.

    Args:
      folder: a `Folder`.
      limit: if it is negative, there is none.
    """
    files = list_cache_entries(folder)
    total = sum([size for _, size, _ in files])
    for _, size, name in files:
        if total <= limit or limit < 0:
            return
        with suppress(OSError):
            if folder.read(name, LARGEST, len(FILE_MAGIC)) == FILE_MAGIC:
                os.unlink(**folder.at(name))
        total -= size


def cached_object_code(name, make):
    """Return code, from disk if it is there; if not, it is made, and kept.

    Args:
      name: a function that returns the key of the code.
      make: a function that returns the code.
    """
    folder = config.jax_compilation_cache_dir
    if folder is None or not config.jax_enable_compilation_cache:
        return make()
    key = name()
    code = read_object(folder, key)
    if code is None:
        code = make()
        write_object(folder, key, code)
    return code


def kept_engine(library):
    """Return the engine of a `Library`, with code from disk if it is there."""
    with defer_interrupts():
        code = cached_object_code(
            lambda: object_cache_key(library), lambda: object_code(library)
        )
        return load_object_code(code)


engine_factory.value = kept_engine
