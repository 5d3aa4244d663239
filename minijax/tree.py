# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.
"""The functions of `minijax.tree_util` under shorter names: ``tree.map``.

Reference: ``jax.tree``.
"""

from importlib import import_module

_NAMES = """
    all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path
    reduce reduce_associative structure transpose unflatten
""".split()


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'minijax.tree' has no attribute {name!r}")
    return getattr(import_module("minijax.tree_util"), f"tree_{name}")


def __dir__():
    return sorted(_NAMES)
