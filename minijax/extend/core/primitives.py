# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The primitives, for those who add rules to them or look for them in jaxprs.

Reference: ``jax.extend.core.primitives``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
