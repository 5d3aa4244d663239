"""Pictures for the book, drawn from the live objects that a chapter has just made.

Every function looks at attributes only (`.name`, `.parent`, `.eqns`, …), so it draws a
chapter's own classes as well as the package's. The results show themselves in a
notebook and carry a text alternative, `.alt`.
"""

from .arrays import arrays
from .butterflies import butterfly
from .caches import keys, visits
from .carries import carry
from .cells import Block, blocks
from .charts import bars, number_line, plot_style, table
from .exchanges import exchange
from .falls import fall
from .graphs import jaxpr
from .grids import grid, standing
from .lanes import lanes
from .lattices import lattice
from .lifetimes import lifetimes
from .nests import nest
from .paths import path
from .pipelines import pipeline
from .prefix_trees import prefix_tree
from .programs import program
from .ranges import ranges
from .records import recorded
from .reels import reel
from .sectors import sectors
from .stages import stages
from .storeys import storeys
from .stretches import stretch
from .strides import strides
from .tilings import tiling
from .timelines import timeline
from .towers import FLOORS, Floor, lift, stack
from .trees import tree
from .windows import windows
from .words import words

__all__ = [
    "FLOORS",
    "Block",
    "Floor",
    "arrays",
    "bars",
    "blocks",
    "butterfly",
    "carry",
    "exchange",
    "fall",
    "grid",
    "jaxpr",
    "keys",
    "lanes",
    "lattice",
    "lifetimes",
    "lift",
    "nest",
    "number_line",
    "path",
    "pipeline",
    "plot_style",
    "prefix_tree",
    "program",
    "ranges",
    "recorded",
    "reel",
    "sectors",
    "stack",
    "stages",
    "standing",
    "storeys",
    "stretch",
    "strides",
    "table",
    "tiling",
    "timeline",
    "tree",
    "visits",
    "windows",
    "words",
]
