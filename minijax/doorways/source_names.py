"""Where in the user's program an equation was written, for those who make equations.

Reference: ``jax.extend.source_info_util``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.diagnostics.user_lines import readers, user_line


def current() -> Any:
    """Return the place in the user's program that runs now, or None.

    Equations that ``minijax.extend.core.new_jaxpr_eqn`` makes keep it.

    Reference: ``jax.extend.source_info_util.current``.
    """
    return user_line()


def new_source_info() -> None:
    """Return what an equation of no place has.

    Reference: ``jax.extend.source_info_util.new_source_info``.
    """
    return


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """Return the file, the line and the function of a place.

    Reference: ``jax.extend.source_info_util.summarize``.
    """
    return source_info.spell(source_info.file) if source_info and num_frames else ""


def register_exclusion(path: str) -> None:
    """Count a file as a library's: lines of its callers are the user's.

    Reference: ``jax.extend.source_info_util.register_exclusion``.
    """
    readers[path] = {}
