"""Pictures for the book, drawn from the live objects that a chapter has just made.

Every function looks at attributes only (`.name`, `.parent`, `.eqns`, …), so it draws a
chapter's own classes as well as the package's. The results show themselves in a
notebook and carry a text alternative.
"""

from .falls import fall
from .grids import grid
from .towers import FLOORS, Floor, lift, stack

__all__ = ["FLOORS", "Floor", "fall", "grid", "lift", "stack"]
