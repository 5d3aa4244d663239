"""What those need who extend the package: checks, promotion, rules, jaxprs.

Reference: ``jax.extend``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
