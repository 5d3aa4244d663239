# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.ranks.initialization import initialize as initialize
from minijax.ranks.initialization import is_initialized as is_initialized
from minijax.ranks.initialization import shutdown as shutdown
