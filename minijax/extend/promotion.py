"""From operands of several dtypes and ranks to operands that ``minijax.lax`` accepts.

JAX has no public module of this kind.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
