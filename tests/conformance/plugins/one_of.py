"""A plugin of pytest: one test of so many, the same ones in every run.

The environment says how many, in ONE_OF. The sum of a test's name decides, so that a
choice of one in sixteen is a part of the choice of one in four.
"""

import os
from zlib import crc32


def as_of_jax(name):
    """Return the name of a test, which may have a class of ours as a parameter."""
    return name.replace("minijax", "jax")


def pytest_collection_modifyitems(config, items):
    """Leave the tests whose sum is a multiple of what the environment says."""
    number = int(os.environ["ONE_OF"])
    left = [item for item in items if crc32(as_of_jax(item.name).encode()) % number]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
