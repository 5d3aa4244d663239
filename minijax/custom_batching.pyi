# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.custom_derivatives.custom_vmap import custom_vmap as custom_vmap
from minijax.scans.evaluation import sequential_vmap as sequential_vmap
