# Made from chapters/39_training.md by `make chapter`;
# edit the chapter, not this file.
"""Checkpoints: trees of arrays in files, replaced atomically, read without pickle.

A file is a line of JSON and the bytes of all leaves behind it. The line tells the tree,
as text, and the path, type and shape of each leaf.
"""

import json
import os
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax import random
from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl
from minijax.arrays.avals import typeof
from minijax.arrays.placement import default_placement
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_flatten, tree_leaves_with_path

FORMAT = "minijax checkpoint 1"


@contextmanager
def replacing(path):
    """Open a file that takes the place of another one when all of it is written."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _is_key(x):
    return jnp.issubdtype(getattr(x, "dtype", float), random.key(0).dtype)


def as_stored(name, leaf):
    """Return what is written of a leaf: the name of its type, and a NumPy array."""
    if _is_key(leaf):
        kind = typeof(leaf).str_short().partition("[")[0]
        return kind, np.asarray(random.key_data(leaf))
    x, kind = np.asarray(leaf, order="C"), type(leaf).__name__
    known = x.dtype.kind in ("biufcMmV" if hasattr(leaf, "dtype") else "bifc")
    if x.dtype.hasobject or not known or isinstance(leaf, np.ma.MaskedArray):
        raise TypeError(
            "a checkpoint holds arrays without masks and numbers of 64 bits; the leaf "
            f"at {name or 'the top'} is a {kind}."
        )
    kind = str(x.dtype) if hasattr(leaf, "dtype") else kind
    return kind, x.astype(x.dtype.newbyteorder("<"), copy=False)


def save(path: Any, tree: Any) -> None:
    """Write a tree to a file, which is either the old one or the new one at any time.

    Args:
      path: of the file; its folder exists.
      tree: its leaves are arrays, keys and Python numbers.

    Raises:
      TypeError: for other leaves, arrays with masks, and integers beyond 64 bits.
    """
    pairs, treedef = tree_leaves_with_path(tree), tree_flatten(tree)[1]
    names = [keystr(keys) for keys, _ in pairs]
    stored = [as_stored(name, leaf) for name, (_, leaf) in zip(names, pairs)]
    body = b"".join([x.tobytes() for _, x in stored])
    header = {
        "format": FORMAT,
        "tree": str(treedef),
        "crc32": zlib.crc32(body),
        "leaves": [
            [name, kind, list(x.shape), x.nbytes]
            for name, (kind, x) in zip(names, stored)
        ],
    }
    with replacing(Path(path)) as file:
        file.write(json.dumps(header).encode() + b"\n" + body)


def read(path: Any) -> tuple[dict, bytes]:
    """Return the header of a checkpoint, and the bytes of its leaves.

    Raises:
      ValueError: if the file is no checkpoint, is cut short, or is damaged.
    """
    line, _, body = Path(path).read_bytes().partition(b"\n")
    try:
        header = json.loads(line)
        if header["format"] != FORMAT:
            raise ValueError
        size, checksum = sum(leaf[3] for leaf in header["leaves"]), header["crc32"]
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"{path} is no file of the format {FORMAT!r}.") from None
    if len(body) != size or zlib.crc32(body) != checksum:
        raise ValueError(
            f"{path} is damaged: it has {len(body)} bytes of leaves, and {size} were "
            "written, or their checksum is another."
        )
    return header, body


MISSING = object()


def _fault(name, stored, leaf):
    """Return what is wrong at a path, or None."""
    place = f"at {name or 'the top'}: "
    if stored is None:
        return place + "the file has no such leaf"
    if leaf is MISSING:
        return place + "the file has a leaf, and the tree has none"
    kind, x = as_stored(name, leaf)
    if (kind, x.shape) == stored[:2]:
        return None
    told = [f"{k}[{','.join(map(str, s))}]" for k, s in (stored[:2], (kind, x.shape))]
    return f"{place}the file has {told[0]}, expected is {told[1]}"


def _like(leaf, stored):
    """Return the stored leaf, as what `leaf` is, where `leaf` is."""
    x = np.ndarray(stored[1], as_stored("", leaf)[1].dtype, stored[2])
    if _is_key(leaf):
        keys = random.wrap_key_data(x, impl=random.key_impl(leaf))
        return transfer.moved(keys, leaf.placement)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.type(x) if isinstance(leaf, np.generic) else x.copy()
    if not hasattr(leaf, "dtype"):
        return type(leaf)(x.item())
    here = default_placement()  # the dtype is that of `leaf`, whatever x64 says now
    array = ArrayImpl(here.device.put(x), leaf.aval, here)
    return transfer.moved(array, leaf.placement)


def restore(path: Any, like: Any) -> Any:
    """Read a checkpoint into a tree of a known form.

    Args:
      path: of the file.
      like: a tree with the structure, shapes and types that are expected, such as the
        state before the first step. Arrays are put where its arrays are, committed or
        not as these are, and are as weak.

    Raises:
      ValueError: if the file has another tree, or cannot be read. The message names
        the paths.
    """
    header, body = read(path)
    pairs, treedef = tree_leaves_with_path(like), tree_flatten(like)[1]
    stored, start = {}, 0
    for name, kind, shape, size in header["leaves"]:
        stored[name] = kind, tuple(shape), body[start : start + size]
        start += size
    wanted = {keystr(keys): leaf for keys, leaf in pairs}
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
