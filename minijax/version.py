"""The version of the package.

Reference: ``jax.version``.
"""

# Made from chapters/27_threads_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import __version__ as __version__
from minijax import __version_info__ as __version_info__
