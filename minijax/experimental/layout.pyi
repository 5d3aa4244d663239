# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.jitting.layouts import Format as Format
from minijax.jitting.layouts import Layout as Layout
from minijax.jitting.layouts import with_layout_constraint as with_layout_constraint
