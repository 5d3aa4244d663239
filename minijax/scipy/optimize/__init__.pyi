# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.solvers import OptimizeResults as OptimizeResults
from minijax.scipy.solvers import minimize as minimize
