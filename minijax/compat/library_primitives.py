"""Primitives of indexing, sorting, windows and factorizations, under JAX's path.

Reference: ``jax.extend.core.primitives``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.transfer import device_put_p as device_put_p
from minijax.distributions.inversion import random_gamma_p as random_gamma_p
from minijax.indexing.dynamic_slices import dynamic_slice_p as dynamic_slice_p
from minijax.indexing.dynamic_slices import (
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from minijax.indexing.gather_scatter import gather_p as gather_p
from minijax.indexing.gather_scatter import scatter_add_p as scatter_add_p
from minijax.indexing.gather_scatter import scatter_p as scatter_p
from minijax.indexing.scatter_variants import scatter_max_p as scatter_max_p
from minijax.indexing.scatter_variants import scatter_min_p as scatter_min_p
from minijax.indexing.scatter_variants import scatter_mul_p as scatter_mul_p
from minijax.linear_algebra.factorizations import cholesky_p as cholesky_p
from minijax.linear_algebra.factorizations import eigh_p as eigh_p
from minijax.linear_algebra.factorizations import lu_p as lu_p
from minijax.linear_algebra.factorizations import qr_p as qr_p
from minijax.linear_algebra.factorizations import svd_p as svd_p
from minijax.linear_algebra.factorizations import (
    triangular_solve_p as triangular_solve_p,
)
from minijax.linear_algebra.lax_linalg import eig_p as eig_p
from minijax.linear_algebra.lax_linalg import hessenberg_p as hessenberg_p
from minijax.linear_algebra.lax_linalg import (
    householder_product_p as householder_product_p,
)
from minijax.linear_algebra.lax_linalg import schur_p as schur_p
from minijax.linear_algebra.lax_linalg import tridiagonal_p as tridiagonal_p
from minijax.linear_algebra.lax_linalg import tridiagonal_solve_p as tridiagonal_solve_p
from minijax.numpy.fft.primitive import fft_p as fft_p
from minijax.sorting.sort import sort_p as sort_p
from minijax.sorting.top_k import top_k_p as top_k_p
from minijax.windows.convolution import conv_general_dilated_p as conv_general_dilated_p
from minijax.windows.reduce_window import reduce_window_max_p as reduce_window_max_p
from minijax.windows.reduce_window import reduce_window_min_p as reduce_window_min_p
from minijax.windows.reduce_window import reduce_window_p as reduce_window_p
from minijax.windows.reduce_window import reduce_window_sum_p as reduce_window_sum_p
