"""Programs that say ``import jax``, run over minijax: a command and a plugin.

PYTEST_DONT_REWRITE
"""

# Made from chapters/42_as_jax.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
