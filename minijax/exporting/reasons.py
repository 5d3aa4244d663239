"""Primitives that StableHLO has no words for, and why."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.batching.collectives import pmax_p, pmin_p, ppermute_p, psum_p
from minijax.batching.exchanges import all_gather_p, all_to_all_p, reduce_scatter_p
from minijax.batching.named_axes import axis_index_p
from minijax.callbacks.debugging import debug_callback_p, debug_print_p
from minijax.callbacks.primitives import io_callback_p, pure_callback_p
from minijax.experimental.checkify.checks import check_p
from minijax.exporting.programs import stablehlo_rules
from minijax.factorizations.eigenvectors import eigh_p
from minijax.factorizations.elimination import lu_p, lu_pivots_to_permutation_p
from minijax.factorizations.orthogonal_factors import qr_p
from minijax.factorizations.singular_values import svd_p
from minijax.forgetting.sinks import dce_sink_p
from minijax.lax.linalg.general_eigenvectors import eig_p
from minijax.lax.linalg.reductions import (
    geqrf_p,
    hessenberg_p,
    householder_product_p,
    ormqr_p,
    tridiagonal_p,
)
from minijax.lax.linalg.schur_forms import schur_p
from minijax.lax.linalg.tridiagonal_systems import tridiagonal_solve_p
from minijax.lax.linalg.updates import cholesky_update_p, symmetric_product_p
from minijax.mesh_maps.manual_axes import pvary_p
from minijax.mesh_maps.map_rules import shard_map_p
from minijax.own_rules.cotangent_rules import custom_lin_p
from minijax.spmd.constraints import sharding_constraint_p
from minijax.spmd.sharding_pictures import inspect_sharding_p

stablehlo_rules[pvary_p] = stablehlo_rules[sharding_constraint_p] = (
    lambda block, eqn, *operands: operands
)
stablehlo_rules[dce_sink_p] = lambda block, eqn, *operands: []
REASONS = {
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
for _reason, _primitives in REASONS.items():
    stablehlo_rules.reasons.update(dict.fromkeys(_primitives, _reason))
