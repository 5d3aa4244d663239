# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The methods of arrays that take elements or look for them.

Reference: ``jax.Array``.
"""

from minijax.diagnostics.tracebacks import guarded
from minijax.indexing.nonzeros import compress, nonzero
from minijax.indexing.takes import take
from minijax.operators.syntax import register


def compress_method(x, condition, axis=None, *, size=None, fill_value=0, out=None):
    """Return the slices for which a condition holds; see `compress`."""
    how = {"size": size, "fill_value": fill_value, "out": out}
    return compress(condition, x, axis, **how)


_methods = {"take": take, "nonzero": nonzero, "compress": compress_method}
register({name: guarded(method) for name, method in _methods.items()})
