# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.factorizations.least_squares import cond as cond
from minijax.factorizations.least_squares import lstsq as lstsq
from minijax.factorizations.least_squares import matrix_rank as matrix_rank
from minijax.factorizations.least_squares import multi_dot as multi_dot
from minijax.factorizations.least_squares import pinv as pinv
from minijax.factorizations.numpy_factors import cholesky as cholesky
from minijax.factorizations.numpy_factors import eigh as eigh
from minijax.factorizations.numpy_factors import eigvalsh as eigvalsh
from minijax.factorizations.numpy_factors import qr as qr
from minijax.factorizations.numpy_factors import svd as svd
from minijax.factorizations.numpy_factors import svdvals as svdvals
from minijax.factorizations.systems import det as det
from minijax.factorizations.systems import inv as inv
from minijax.factorizations.systems import matrix_power as matrix_power
from minijax.factorizations.systems import slogdet as slogdet
from minijax.factorizations.systems import solve as solve
from minijax.factorizations.systems import tensorinv as tensorinv
from minijax.factorizations.systems import tensorsolve as tensorsolve
from minijax.numpy.linalg.norms import norm as norm
