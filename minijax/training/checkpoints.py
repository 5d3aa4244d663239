"""Checkpoints: trees of arrays in files, replaced atomically, read without pickle.

A file is a line with the format and a hash of what follows, a line of JSON, and the
bytes of all leaves. The JSON tells the tree, as text, and the path, type and shape of
each leaf.
"""

# Made from chapters/39_training.md by `make chapter`;
# edit the chapter, not this file.

import json
import os
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax import random, typeof
from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl
from minijax.arrays.devices import default_placement
from minijax.dtypes import prng_key
from minijax.tree_util import keystr, tree_flatten, tree_leaves_with_path

FORMAT = "minijax checkpoint 2"


@contextmanager
def replacing(path):
    """Open a file that takes the place of another one when all of it is written."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.part")
    try:
        with open(draft, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


ARRAYS, NUMBERS = (ArrayImpl, np.generic), (bool, int, float, complex)


def _is_key(x):
    return jnp.issubdtype(getattr(x, "dtype", float), prng_key)


def as_stored(name, leaf):
    """Return what is written of a leaf: the name of its type, and a NumPy array."""
    if _is_key(leaf):
        kind = typeof(leaf).str_short().partition("[")[0]
        return kind, np.asarray(random.key_data(leaf))
    x, kind = np.asarray(leaf, order="C"), type(leaf).__name__
    is_array = isinstance(leaf, ARRAYS) or type(leaf) in (np.ndarray, np.memmap)
    known = x.dtype.kind in ("biufcMmV" if is_array else "bifc")
    if x.dtype.hasobject or not known or not (is_array or type(leaf) in NUMBERS):
        raise TypeError(
            "a checkpoint holds arrays without masks, and numbers of Python of 64 "
            f"bits; the leaf at {name or 'the top'} is a {kind}."
        )
    kind = str(x.dtype) if is_array else kind
    return kind, x.astype(x.dtype.newbyteorder("<"), copy=False)


def by_path(tree):
    """Return the leaves of a tree by their paths, as text, and its structure.

    Raises:
      ValueError: if two leaves have the same path: nobody could tell them apart.
    """
    pairs, found = tree_leaves_with_path(tree), {}
    for keys, leaf in pairs:
        if (name := keystr(keys)) in found:
            raise ValueError(
                f"two leaves of the tree are at {name or 'the top'}. A checkpoint "
                "finds leaves by their paths: give the nodes different keys."
            )
        found[name] = leaf
    return found, tree_flatten(tree)[1]


def save(path: Any, tree: Any) -> None:
    """Write a tree to a file, which is either the old one or the new one at any time.

    Args:
      path: of the file; its folder exists.
      tree: its leaves are arrays, keys and Python numbers.

    Raises:
      TypeError: for other leaves, arrays with masks, and integers beyond 64 bits.
      ValueError: if the paths of two leaves have the same text.
    """
    leaves, treedef = by_path(tree)
    stored = {name: as_stored(name, leaf) for name, leaf in leaves.items()}
    header = {
        "tree": str(treedef),
        "leaves": [
            [name, kind, list(x.shape), x.nbytes] for name, (kind, x) in stored.items()
        ],
    }
    content = b"".join([_line(header), *[x.tobytes() for _, x in stored.values()]])
    with replacing(Path(path)) as file:
        file.write(_seal(content) + content)


def _line(header):
    return json.dumps(header).encode() + b"\n"


def _seal(content):
    """Return the first line of a file: its format, and a hash of all that follows."""
    return f"{FORMAT} {sha256(content).hexdigest()}\n".encode()


def read(path: Any) -> tuple[dict, bytes]:
    """Return the header of a checkpoint, and the bytes of its leaves.

    Raises:
      ValueError: if the file is no checkpoint, is cut short, or is damaged.
      OSError: if there is no file, or it may not be read.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file, and so no checkpoint.")
    seal, _, content = path.read_bytes().partition(b"\n")
    if not seal.startswith(FORMAT.encode() + b" "):
        raise ValueError(f"{path} is no file of the format {FORMAT!r}{_begins(seal)}.")
    if seal + b"\n" != _seal(content):
        raise ValueError(
            f"{path} is damaged: the {len(content)} bytes behind its first line have "
            "another hash than those that were written."
        )
    line, _, body = content.partition(b"\n")
    return _header(path, line + b"\n", len(body)), body


def _begins(start):
    """Return what is said of a file that begins in another way."""
    if start.startswith(b'{"format": "minijax checkpoint 1"'):
        return (
            ": it has the older 'minijax checkpoint 1', in which damage could go "
            "unseen. The version of minijax that has written it can restore it"
        )
    return f": it begins with {start[:24]!r}" if start else ": it begins with no line"


def _header(path, line, size):
    """Return what a line of JSON says; it is one that `save` writes for `size` bytes.

    To write it again shows doubled names, and numbers that are spelled in other ways.
    """
    try:
        header = json.loads(line)
        leaves = header["leaves"]
        said = [_is_leaf(*leaf) and leaf[3] for leaf in leaves]
        whole = all(n is not False for n in said) and sum(said) == size
        names = {leaf[0] for leaf in leaves}
        if _line(header) == line and whole and len(names) == len(leaves):
            return header
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ValueError(
        f"{path} is no checkpoint that save has written: its second line does not "
        f"describe the {size} bytes of leaves that follow it."
    )


def _is_leaf(name, kind, shape, size):
    """Return whether these are a path, a type, a shape and a number of bytes."""
    return (
        isinstance(name, str)
        and isinstance(kind, str)
        and isinstance(shape, list)
        and all(type(n) is int and n >= 0 for n in [*shape, size])
    )


MISSING = object()


def _fault(name, stored, leaf):
    """Return what is wrong at a path, or None."""
    place = f"at {name or 'the top'}: "
    if stored is None:
        return place + "the file has no such leaf"
    if leaf is MISSING:
        return place + "the file has a leaf, and the tree has none"
    kind, x = as_stored(name, leaf)
    if (kind, x.shape) != stored[:2]:
        pair = stored[:2], (kind, x.shape)
        told = [f"{k}[{','.join(map(str, s))}]" for k, s in pair]
        return f"{place}the file has {told[0]}, expected is {told[1]}"
    if x.nbytes != (size := len(stored[2])):
        return f"{place}the file has {size} bytes, where {kind} takes {x.nbytes}"
    return None


def _like(leaf, stored):
    """Return the stored leaf, as what `leaf` is, where `leaf` is."""
    x = np.ndarray(stored[1], as_stored("", leaf)[1].dtype, stored[2])
    if _is_key(leaf):
        keys = random.wrap_key_data(x, impl=random.key_impl(leaf))
        return transfer.copy_to_placement(keys, leaf.placement)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return x.copy()[()] if isinstance(leaf, np.generic) else x.copy()
    if not hasattr(leaf, "dtype"):
        return type(leaf)(x.item())
    here = default_placement()  # the dtype is that of `leaf`, whatever x64 says now
    array = ArrayImpl(here.device.put(x), leaf.aval, here)
    return transfer.copy_to_placement(array, leaf.placement)


def restore(path: Any, like: Any) -> Any:
    """Read a checkpoint into a tree of a known form.

    Args:
      path: of the file.
      like: a tree with the structure, shapes and types that are expected, such as the
        state before the first step. Arrays are put where its arrays are, committed or
        not as these are, and are as weak.

    Raises:
      ValueError: if the file is damaged or no checkpoint, or has other leaves than
        `like`: the message names the paths.
      TypeError: if a leaf of `like` is one that `save` refuses.
      OSError: if there is no file, or it may not be read.
    """
    header, body = read(path)
    wanted, treedef = by_path(like)
    stored, start = {}, 0
    for name, kind, shape, size in header["leaves"]:
        stored[name] = kind, tuple(shape), body[start : start + size]
        start += size
    faults = [
        fault
        for name in {**wanted, **stored}
        if (fault := _fault(name, stored.get(name), wanted.get(name, MISSING)))
    ]
    if faults:
        raise ValueError(
            f"{path} does not fit the tree that was expected:\n  " + "\n  ".join(faults)
        )
    return treedef.unflatten([
        _like(leaf, stored[name]) for name, leaf in wanted.items()
    ])  # fmt: skip
