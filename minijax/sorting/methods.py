"""The methods of arrays that sort.

Reference: ``jax.Array``.
"""

# Made from chapters/29_sorting_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.operators.syntax import register
from minijax.sorting.searching import searchsorted
from minijax.sorting.sorted_arrays import argpartition, argsort, sort


def argsort_method(x, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Return the places of the elements in order; see `argsort`."""
    how = {"stable": stable, "descending": descending}
    return argsort(x, axis, kind=kind, order=order, **how)


register({
    "sort": sort,
    "argsort": argsort_method,
    "argpartition": argpartition,
    "searchsorted": searchsorted,
})  # fmt: skip
