"""Functions that are exported: text, types, and why some cannot be.

References: ``jax.lax.dce_sink``, ``jax.lax.stage``, ``jax.export``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax import ShapeDtypeStruct, config, jit, typeof, vjp
from minijax import numpy as jnp
from minijax.callbacks.callback import (
    debug_callback_p,
    debug_print_p,
    io_callback_p,
    pure_callback_p,
)
from minijax.control_flow.common import DEBUG_PRIMITIVES
from minijax.core import Array, Primitive, impl_rules
from minijax.experimental.checkify.checking import check_p
from minijax.extend.core import ClosedJaxpr, jaxpr_as_fun, primal_dtype_to_tangent_dtype
from minijax.extend.core.primitives import custom_lin_p
from minijax.extend.rules import (
    effect_rules,
    jvp_rules,
    kernel_rules,
    python_rules,
    shape_rules,
    transpose_rules,
    vmap_rules,
)
from minijax.forward_mode.jvp import defjvp_zero
from minijax.jaxprs.types import struct_of
from minijax.lax import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    convert_element_type,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
    sharding_constraint_p,
)
from minijax.lax.linalg import (
    cholesky_update_p,
    eig_p,
    eigh_p,
    hessenberg_p,
    householder_product_p,
    lu_p,
    lu_pivots_to_permutation_p,
    ormqr_p,
    qr_p,
    schur_p,
    svd_p,
    symmetric_product_p,
    tridiagonal_p,
    tridiagonal_solve_p,
)
from minijax.linear_algebra.lax_linalg import geqrf_p
from minijax.sharding.manual_axes import pvary_p
from minijax.sharding.pmap import shard_map_p
from minijax.sharding.visualization import inspect_sharding_p
from minijax.stablehlo.lowering import (
    IDENTITY_PRIMITIVES,
    LIST_ATTRIBUTE_OPS,
    STABLEHLO_OPS,
    mlir_module_text,
    stablehlo_rules,
)
from minijax.stablehlo.lowering_rules import (
    SCATTER_SUFFIXES,
    WORD_OPS,
    top_k_op,
    window_attributes,
)
from minijax.tree_util import PyTreeDef, tree_flatten, tree_leaves
from minijax.typing import ArrayLike

# Values that count as used in a program, and numbers that count as its own.

dce_sink_p: Primitive = Primitive("dce_sink")
dce_sink_p.multiple_results = True


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
jvp_rules[dce_sink_p] = defjvp_zero(dce_sink_p)
transpose_rules.reasons[dce_sink_p] = "It has no result, so no cotangent arrives."
vmap_rules[dce_sink_p] = lambda axis, args, dims, **params: (
    dce_sink_p.bind(*args, **params),
    [],
)
effect_rules[dce_sink_p] = lambda eqn: True
python_rules[dce_sink_p] = kernel_rules[dce_sink_p] = _nothing
DEBUG_PRIMITIVES.add(
    dce_sink_p
)  # like a print it changes no result of a branch not taken


def stage(x: ArrayLike, /) -> Array:
    """Return a number or an array as a value of the program that is written down.

    Args:
      x: an array, or a number, which stays weakly typed.

    Raises:
      TypeError: if it is neither.

    Reference: ``jax.lax.stage``.
    """
    typeof(x)
    return jnp.asarray(x)


# Primitives that StableHLO has no words for, and why.

stablehlo_rules[pvary_p] = stablehlo_rules[sharding_constraint_p] = (
    lambda block, eqn, *operands: operands
)
stablehlo_rules[dce_sink_p] = lambda block, eqn, *operands: []
UNSUPPORTED_REASONS = {
    "A text runs elsewhere, where this Python function is not there to be called.": [
        debug_callback_p, debug_print_p, io_callback_p, pure_callback_p, check_p,
    ],
    "Of the factors of a matrix StableHLO has Cholesky's only.": [
        eig_p, eigh_p, lu_p, lu_pivots_to_permutation_p, qr_p, svd_p, schur_p,
        hessenberg_p, tridiagonal_p, geqrf_p, householder_product_p, ormqr_p,
        tridiagonal_solve_p, symmetric_product_p, cholesky_update_p,
    ],
    "A text is the program of one device; this one is for the devices of a mesh.": [
        shard_map_p, axis_index_p, psum_p, pmax_p, pmin_p, ppermute_p, all_gather_p,
        all_to_all_p, reduce_scatter_p, inspect_sharding_p,
    ],
    "It is never run, only transposed.": [custom_lin_p],
}  # fmt: skip
for _reason, _primitives in UNSUPPORTED_REASONS.items():
    stablehlo_rules.reasons.update(dict.fromkeys(_primitives, _reason))


# Functions that are exported: their text, and what is known of their types.

# The rules of all families are in the table when a text is asked for: to name something
# of each module is to import it.
_FAMILIES = (
    STABLEHLO_OPS,
    LIST_ATTRIBUTE_OPS,
    IDENTITY_PRIMITIVES,
    top_k_op,
    SCATTER_SUFFIXES,
    window_attributes,
    WORD_OPS,
    UNSUPPORTED_REASONS,
)


@dataclass(frozen=True, eq=False)
class Exported:
    """A function for arguments of certain types, as a text that compilers read.

    Attributes:
      fun_name: the name of the function.
      in_tree, out_tree: the structures of ``(args, kwargs)`` and of the result.
      in_avals, out_avals: the abstract values of their leaves.
      platforms: the names of those that the text is for.
      jaxpr: the program.
      x64: whether 64 bits were on when it was exported.
      nr_devices: 1; a program of parts is not exported.
      disabled_safety_checks: empty; there are no such checks.

    Reference: ``jax.export.Exported``.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple
    out_tree: PyTreeDef
    out_avals: tuple
    platforms: tuple[str, ...]
    jaxpr: ClosedJaxpr
    x64: bool = False
    nr_devices = 1
    disabled_safety_checks = ()

    def mlir_module(self) -> str:
        """Return the text of the module, in StableHLO.

        Raises:
          NotImplementedError: if the program has a primitive that the language lacks.
        """
        return mlir_module_text(self.jaxpr, self.fun_name)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here, in our own machine, on arguments of these types.

        It runs with 64 bits, or without them, as it was exported.

        Raises:
          ValueError: if the arguments have another structure, shape or dtype.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                f"{self.fun_name} was exported for arguments {self.in_tree}, not "
                f"{tree}."
            )
        for i, (x, aval) in enumerate(zip(leaves, self.in_avals)):
            given = typeof(x)
            if (given.shape, given.dtype) != (aval.shape, aval.dtype):
                raise ValueError(
                    f"{self.fun_name} was exported for {aval.str_short()} as leaf {i} "
                    f"of its arguments, not for {given.str_short()}."
                )
        with config.override("jax_enable_x64", self.x64):
            leaves = list(map(_as_strong, leaves, self.in_avals))
            return self.out_tree.unflatten(jit(jaxpr_as_fun(self.jaxpr))(*leaves))

    def in_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return None for each argument's leaf: a program of parts is not exported."""
        return (None,) * len(self.in_avals)

    def out_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return None for each leaf of the result, see `in_shardings_jax`."""
        return (None,) * len(self.out_avals)

    def has_vjp(self) -> bool:
        """Return True: the program is known, so its derivative can be exported."""
        return True

    def vjp(self) -> "Exported":
        """Return the pullback, exported: from leaves and cotangents to cotangents.

        Its arguments are the leaves of the function's arguments, followed by the
        cotangents of the leaves of its result; its result is a tuple.
        """
        fun, count = jaxpr_as_fun(self.jaxpr), len(self.in_avals)

        def fun_vjp_jax(*args):  # the name that it has in JAX
            return vjp(fun, *args[:count])[1](list(args[count:]))

        with config.override("jax_enable_x64", self.x64):
            structs = map(struct_of, self.in_avals)
            return export(jit(fun_vjp_jax))(*structs, *map(_cotangent, self.out_avals))


def _as_strong(x, aval):
    """Return a value that is as weak as the one for which the program was written."""
    return x if aval.weak_type else convert_element_type(x, aval.dtype)


def _cotangent(aval):
    return ShapeDtypeStruct(aval.shape, primal_dtype_to_tangent_dtype(aval.dtype))


def default_export_platform() -> str:
    """Return the platform for which functions are exported here."""
    return "cpu"


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
) -> Callable[..., Exported]:
    """Return a function that exports a jitted function, given arguments or types.

    Args:
      fun_jit: what `jit` has returned.
      platforms: names to note in the result. Our texts name no platform, so that one
        text is for all.
      disabled_checks: accepted as in JAX; there are no such checks here.

    Raises:
      ValueError: if the function is not jitted.

    Reference: ``jax.export.export``.
    """
    if not hasattr(fun_jit, "trace"):
        raise ValueError(
            f"export takes a function that jit has returned, not {fun_jit!r}. Write "
            "export(jit(f))."
        )
    names = tuple(platforms) if platforms else (default_export_platform(),)

    def exporting(*args, **kwargs):
        traced = fun_jit.trace(*args, **kwargs)
        closed = traced.program
        return Exported(
            traced.fun_name, traced.in_tree, tuple(closed.in_avals), traced.out_tree,
            tuple(closed.out_avals), names, closed, config.jax_enable_x64,
        )  # fmt: skip

    return exporting
