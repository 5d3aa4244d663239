# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Arguments of jitted functions as leaves."""

import numpy as np

from minijax.array import ArrayImpl
from minijax.transfer import device_put
from minijax.treedefs import tree_flatten

LEAVES = frozenset([ArrayImpl, np.ndarray, bool, int, float, complex])


def take_apart(args, kwargs):
    """Return the leaves of arguments, and what stands for their structure in a key."""
    names = tuple(sorted(kwargs)) if kwargs else ()
    leaves, trees = [], []
    for arg in [*args, *map(kwargs.get, names)]:
        if type(arg) in LEAVES:
            leaves.append(arg)
            trees.append(None)
        else:
            found, tree = tree_flatten(arg)
            leaves += found
            trees.append(tree)
    return leaves, (names, tuple(trees))


def placed(leaf, device):
    """Return a leaf as an array on a device, where it may be already."""
    there = type(leaf) is ArrayImpl and leaf.device is device
    return leaf if there else device_put(leaf, device)
