"""The functions of `minijax.tree_util` under shorter names: ``tree.map``.

Reference: ``jax.tree``.
"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

from minijax._lazy import as_called_in

_NAMES = """
    all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path
    reduce reduce_associative static structure transpose unflatten
""".split()
_ELSEWHERE = {"static": "minijax.pytrees.tree_operations"}  # not in `tree_util`


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'minijax.tree' has no attribute {name!r}")
    place = _ELSEWHERE.get(name, "minijax.tree_util")
    return as_called_in(getattr(import_module(place), f"tree_{name}"), __name__, name)


def __dir__():
    return sorted(_NAMES)
