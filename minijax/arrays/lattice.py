"""The lattice of data types: what two of them become together.

A Python number has a kind but no width. Its type is *weak*, is written with a
star, and gives way to the width of what it meets.

Reference: ``jax.dtypes``; the lattice is JAX's, from
https://docs.jax.dev/en/latest/type_promotion.html.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

import functools

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import from_node, lattice_node
from minijax.arrays.settings import config

# From every type to those directly above it.
ABOVE = {
    "bool": ["int*"],
    "int*": ["uint8", "int8"],
    "uint8": ["int16", "uint16"], "uint16": ["int32", "uint32"],
    "uint32": ["int64", "uint64"], "uint64": ["float*"],
    "int8": ["int16"], "int16": ["int32"], "int32": ["int64"], "int64": ["float*"],
    "float*": ["bfloat16", "float16", "complex*"],
    "bfloat16": ["float32"], "float16": ["float32"],
    "float32": ["float64", "complex64"], "float64": ["complex128"],
    "complex*": ["complex64"], "complex64": ["complex128"], "complex128": [],
}  # fmt: skip


@functools.cache
def all_above(node):
    """Return all types that lie above the type `node`, itself included."""
    return frozenset([node]).union(*map(all_above, ABOVE[node]))


@functools.cache
def join(*nodes):
    """Return the lowest type that lies above all `nodes`."""
    common = frozenset.intersection(*map(all_above, nodes))
    [lowest] = [node for node in common if common <= all_above(node)]
    return lowest


def common_type(*args):
    """Return the dtype that `args` have together, and whether it is weak."""
    types = {(aval.dtype, aval.weak_type) for aval in map(typeof, args)}
    if len(types) == 1:
        dtype, weak_type = types.pop()
        return dtype, weak_type and dtype.kind != "b"
    return _where_they_meet(frozenset(types), config.jax_enable_x64)


@functools.cache
def _where_they_meet(types, wide):  # `wide`, for the cache: the dtype depends on it
    return from_node(join(*[lattice_node(*type) for type in types]))
