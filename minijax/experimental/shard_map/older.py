"""`shard_map` with the arguments that it had first.

Reference: ``jax.experimental.shard_map``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import warnings
from collections.abc import Callable
from typing import Any

from minijax.replicas import specifications


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
) -> Callable[..., Any]:
    """Return a function that runs `f` once on each device of a mesh. Deprecated.

    Args:
      f, mesh, in_specs, out_specs: as of `minijax.shard_map`.
      check_rep: what `check_vma` is there.

    Reference: ``jax.experimental.shard_map.shard_map``.
    """
    warnings.warn(
        "minijax.experimental.shard_map is deprecated. Use minijax.shard_map.",
        DeprecationWarning,
        stacklevel=2,
    )
    how = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs}
    return specifications.shard_map(f, check_vma=check_rep, **how)
