"""Primitives of branches and loops.

Reference: ``jax.extend.core.primitives``.
"""

# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.branches.conditionals import cond_p as cond_p
from minijax.branches.while_loops import while_p as while_p
from minijax.scans.primitive import scan_p as scan_p
