"""Checks of operands that switches ask for: strict promotion, and told new axes.

Reference: ``jax.numpy_dtype_promotion``, ``jax.numpy_rank_promotion``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import warnings
from functools import partial

import numpy as np

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import (
    EXTENDED,
    PYTHON_OF_NODE,
    kind_of,
    lattice_node,
    name_of,
)
from minijax.arrays.settings import config
from minijax.lax.promotion import check_arraylike
from minijax.switches.known import _one_of

WEAK_BELOW = {
    "b": [], "i": ["int*"], "u": ["int*"], "f": ["int*", "float*"],
    "h": ["int*", "float*"], "c": ["int*", "float*", "complex*"],
}  # fmt: skip
MANUAL = "see https://docs.jax.dev/en/latest/rank_promotion_warning.html."


class TypePromotionError(ValueError):
    """Two dtypes do not meet, since promotion is strict.

    Reference: ``jax.dtypes.TypePromotionError``.
    """


def check_operands(name, *args):
    """Refuse what is no array, what meets keys, and what the switches refuse."""
    check_arraylike(name, *args)
    dtypes = {getattr(arg, "dtype", None): arg for arg in args}
    if len(dtypes) > 1 and not EXTENDED.keys().isdisjoint(dtypes):
        listed = ", ".join(name_of(typeof(arg).dtype) for arg in args)
        raise TypeError(f"{name} does not accept dtypes {listed}.")
    for check in wanted:
        check(name, args)


def check_dtypes(name, args):
    """Refuse operands of different dtypes, if promotion is strict in this thread."""
    if config.jax_numpy_dtype_promotion == "strict" and len(args) > 1:
        avals = [typeof(arg) for arg in args]
        check_strict({lattice_node(aval.dtype, aval.weak_type) for aval in avals})


def check_strict(nodes):
    """Refuse places in the lattice that do not meet without a change of dtype."""
    weak = [node for node in nodes if node.endswith("*")]
    strong = [node for node in nodes if node not in weak]
    below = WEAK_BELOW[kind_of(np.dtype(strong[0]))] if strong else weak
    if len(strong) > 1 or not {*weak} <= {*below}:
        raise TypePromotionError(
            f"Input dtypes {tuple(sorted(map(_node_text, nodes)))} have no available "
            "implicit dtype promotion path when jax_numpy_dtype_promotion=strict. Try "
            "explicitly casting inputs to the desired output type, or set "
            "jax_numpy_dtype_promotion=standard."
        )


def _node_text(node):
    return str(PYTHON_OF_NODE[node]) if node.endswith("*") else node


def check_ranks(name, args):
    """Tell of operands of different ranks, if this thread wants to hear of them."""
    shapes = [typeof(arg).shape for arg in args]
    if len({len(shape) for shape in shapes if shape}) > 1:
        tell_of_ranks(name, shapes)


def tell_of_ranks(name, shapes):
    """Warn of shapes of different ranks or refuse them, as this thread has asked."""
    mode = config.jax_numpy_rank_promotion
    if mode == "allow":
        return
    listed = " ".join(map(str, shapes))
    if mode == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {listed} "
            "and with the config option jax_numpy_rank_promotion='raise'. For more "
            f"information, {MANUAL}"
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {listed}. Set "
        "the jax_numpy_rank_promotion config option to 'allow' to disable this "
        f"warning; for more information, {MANUAL}",
        stacklevel=5,
    )


wanted: list = []  # the checks that a thread may want


def _follow(check, default):
    """Return what keeps a check in `wanted` while its switch has another value."""

    def told(values):
        if check in wanted:
            wanted.remove(check)
        if {*values} != {default}:
            wanted.append(check)

    return told


def _define_promotion(name, check, *choices):
    value = os.environ.get(name.upper(), choices[0])
    config.define(name, value, partial(_one_of, choices), _follow(check, choices[0]))


_define_promotion("jax_numpy_dtype_promotion", check_dtypes, "standard", "strict")
_define_promotion("jax_numpy_rank_promotion", check_ranks, "allow", "warn", "raise")


def any_promotion():
    """Allow operands of all ranks and dtypes, in a ``with`` block of this thread."""
    ranks, dtypes = "jax_numpy_rank_promotion", "jax_numpy_dtype_promotion"
    return config.override_all({ranks: "allow", dtypes: "standard"})
