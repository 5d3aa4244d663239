# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.solvers import bicgstab as bicgstab
from minijax.scipy.solvers import cg as cg
from minijax.scipy.solvers import gmres as gmres
