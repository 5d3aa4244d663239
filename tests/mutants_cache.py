"""A cache of machine code that is wrong on purpose, and the battery that finds it."""

from contextlib import contextmanager
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from minijax.arrays.dtypes import config
from minijax.dispatch import compilation_cache as object_cache
from minijax.dispatch.compilation_cache import CODE_SUFFIX, FILE_MAGIC, object_cache_key
from minijax.llvm.compiler import Library
from tests.test_llvm_compiler import TEXT, call


@contextmanager
def unbound_entries():
    """The old reading: an entry's hash is of its code alone.

    It says neither for which key the code was made nor by whom. An entry under another
    key is loaded, and so is whatever others have put there: `swapped_entries` and
    `forged_entries` find it.
    """
    sound = object_cache.file_header
    object_cache.file_header = lambda key, code: FILE_MAGIC + sha256(code).digest()
    try:
        yield
    finally:
        object_cache.file_header = sound


def _libraries(count):
    return [Library(TEXT.replace("NUMBER", f"{k}.0")) for k in range(count)]


def _differences(count):
    values = [call(library.function("add", 2)) for library in _libraries(count)]
    return [(k, value) for k, value in enumerate(values) if value != 1 + k]


def swapped_entries(folder, count=3):
    """What a few functions return wrongly, once their entries have changed places.

    Args:
      folder: of the cache, a path; it should be empty.
      count: of functions: number k adds k, and is called with 1.

    Returns:
      a list of pairs: the number of a function, and what it has returned.
    """
    on = config.override("jax_enable_compilation_cache", True)
    with on, config.override("jax_compilation_cache_dir", str(folder)):
        keys = [object_cache_key(library) for library in _libraries(count)]
        paths = [Path(folder, key + CODE_SUFFIX) for key in keys]
        for one, other in pairwise(paths):
            contents = one.read_bytes(), other.read_bytes()
            other.write_bytes(contents[0]), one.write_bytes(contents[1])
        return _differences(count)


def forged_entries(folder):
    """The entries that are read though one without the secret has made them.

    Args:
      folder: of the cache, a path.

    Returns:
      a list of the codes that were read.
    """
    key, code = "0f" * 32, b"no machine code at all"
    hashes = [sha256(code), sha256(key.encode() + code), sha256(FILE_MAGIC + code)]
    found = []
    for made in hashes:
        for head in (b"", FILE_MAGIC):
            content = head + made.digest() + code
            Path(folder, key + CODE_SUFFIX).write_bytes(content)
            found.append(object_cache.read_object(str(folder), key))
    return [code for code in found if code is not None]
