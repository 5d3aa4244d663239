"""The version of what runs the programs, which is that of the package.

Reference: ``jax.lib``.
"""

# Made from chapters/27_threads_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import __version__ as __version__
