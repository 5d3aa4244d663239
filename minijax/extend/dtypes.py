"""What a library asks about a dtype: its kind, its parts, its limits, its name.

JAX has no public module of this kind; ``jax.dtypes`` has other questions.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
