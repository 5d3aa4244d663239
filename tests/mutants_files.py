"""Checkpoints that are wrong on purpose: `tests.kept_files` finds each of them."""

import json
import os
from contextlib import contextmanager

from minijax.training import checkpoints


@contextmanager
def replaced(place, **values):
    """Give attributes of a module other values."""
    before = {name: getattr(place, name) for name in values}
    vars(place).update(values)
    try:
        yield
    finally:
        vars(place).update(before)


def unsealed_headers():
    """The old format: the checksum is of the leaves alone, and nobody reads the rest.

    Sizes that have changed, with one sum, tell each leaf from another place.
    """
    sealed = checkpoints._seal

    def of_leaves(content):
        return sealed(content.partition(b"\n")[2])

    def header(path, line, size):
        found = json.loads(line)
        assert sum(leaf[3] for leaf in found["leaves"]) == size
        return found

    return replaced(checkpoints, _seal=of_leaves, _header=header)


def shared_drafts():
    """The old draft: all threads of a process write into the same one."""
    return replaced(os, urandom=bytes)


def unchecked_headers():
    """The hash is checked; what stands under it is believed."""
    return replaced(checkpoints, _header=lambda path, line, size: json.loads(line))
