"""minijax: JAX, built from nothing, every line of it explained in a book."""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__version__ = "0.1.0"
__version_info__ = tuple(map(int, __version__.split(".")))
__getattr__, __dir__ = namespace(__name__)
