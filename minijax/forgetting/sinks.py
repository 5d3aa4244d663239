"""Values that count as used in a program, and numbers that count as its own.

Reference: ``jax.lax.dce_sink``, ``jax.lax.stage``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.batching.rules import vmap_rules
from minijax.branches.selecting import PRINTING
from minijax.core import Array, Primitive, impl_rules
from minijax.emitted.emission import python_rules
from minijax.forgetting.programs import effect_rules
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.kernels.program_steps import kernel_rules
from minijax.operators.operands import as_array
from minijax.reverse.transposition import transpose_rules
from minijax.tree_util import tree_leaves
from minijax.typing import ArrayLike

dce_sink_p: Primitive = Primitive("dce_sink")


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep what computes a value in the program, although no result needs it.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: False. Backends compute nothing for a sink.

    Raises:
      TypeError: if a leaf is no array or scalar.
      NotImplementedError: if `prevent_mlir_dce` is true.

    Reference: ``jax.lax.dce_sink``.
    """
    if prevent_mlir_dce:
        raise NotImplementedError(
            "dce_sink(prevent_mlir_dce=True): no backend computes a value for a sink "
            "alone. Leave it out; to have the value computed, give it to "
            "debug.callback."
        )
    leaves = tree_leaves(val)
    for leaf in leaves:
        typeof(leaf)
    for leaf in leaves:
        dce_sink_p.bind(leaf, prevent_mlir_dce=False)


def _nothing(*args, **params):
    return []


impl_rules[dce_sink_p] = shape_rules[dce_sink_p] = _nothing
jvp_rules[dce_sink_p] = constant_rule(dce_sink_p)
transpose_rules.reasons[dce_sink_p] = "It has no result, so no cotangent arrives."
vmap_rules[dce_sink_p] = lambda axis, args, dims, **params: (
    dce_sink_p.bind(*args, **params),
    [],
)
effect_rules[dce_sink_p] = lambda eqn: True
python_rules[dce_sink_p] = kernel_rules[dce_sink_p] = _nothing
PRINTING.add(dce_sink_p)  # like a print it changes no result of a branch not taken


def stage(x: ArrayLike, /) -> Array:
    """Return a number or an array as a value of the program that is written down.

    Args:
      x: an array, or a number, which stays weakly typed.

    Raises:
      TypeError: if it is neither.

    Reference: ``jax.lax.stage``.
    """
    typeof(x)
    return as_array(x)
