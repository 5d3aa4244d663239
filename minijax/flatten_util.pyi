# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.pytrees.raveling import ravel_pytree as ravel_pytree
