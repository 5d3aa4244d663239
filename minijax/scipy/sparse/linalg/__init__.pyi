# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.sparse.linalg.iterations import bicgstab as bicgstab
from minijax.scipy.sparse.linalg.iterations import cg as cg
from minijax.scipy.sparse.linalg.iterations import gmres as gmres
