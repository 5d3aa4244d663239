# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.pytrees.tree_operations import ravel_pytree as ravel_pytree
