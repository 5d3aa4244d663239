"""Traces of what a process does: spans with names, in a file for a trace viewer.

Reference: ``jax.profiler``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
