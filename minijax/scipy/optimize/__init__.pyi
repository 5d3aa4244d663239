# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.optimize.descent import OptimizeResults as OptimizeResults
from minijax.scipy.optimize.descent import minimize as minimize
