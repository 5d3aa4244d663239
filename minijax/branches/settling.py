"""The least fixed point of flags that turn one another on.

Reference: the loops over ``carry_nz``, ``carry_uk`` and ``carry_batched`` in the rules
of ``while_p`` and ``scan_p`` in ``jax._src.lax.control_flow.loops``.
"""

# Made from chapters/15_while_upper.md by `make chapter`;
# edit the chapter, not this file.

from operator import or_


def settle(step, flags):
    """Return the flags that are on in the end, if each one may turn others on.

    Args:
      step: a function from a tuple of flags to the flags that follow from them.
      flags: a tuple of booleans to begin with.
    """
    while (found := tuple(map(or_, flags, step(flags)))) != flags:
        flags = found
    return flags
