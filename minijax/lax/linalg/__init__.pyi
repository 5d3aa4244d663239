# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.factorizations.cholesky import cholesky as cholesky
from minijax.factorizations.cholesky import cholesky_p as cholesky_p
from minijax.factorizations.eigenvectors import EighImplementation as EighImplementation
from minijax.factorizations.eigenvectors import eigh as eigh
from minijax.factorizations.eigenvectors import eigh_p as eigh_p
from minijax.factorizations.elimination import lu as lu
from minijax.factorizations.elimination import lu_p as lu_p
from minijax.factorizations.elimination import lu_pivots_to_permutation as lu_pivots_to_permutation
from minijax.factorizations.elimination import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from minijax.factorizations.orthogonal_factors import qr as qr
from minijax.factorizations.orthogonal_factors import qr_p as qr_p
from minijax.factorizations.singular_values import SvdAlgorithm as SvdAlgorithm
from minijax.factorizations.singular_values import svd as svd
from minijax.factorizations.singular_values import svd_p as svd_p
from minijax.factorizations.triangular import triangular_solve as triangular_solve
from minijax.factorizations.triangular import triangular_solve_p as triangular_solve_p
from minijax.lax.linalg.general_eigenvectors import EigImplementation as EigImplementation
from minijax.lax.linalg.general_eigenvectors import eig as eig
from minijax.lax.linalg.general_eigenvectors import eig_p as eig_p
