# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.compat.core import current as current
from minijax.compat.core import new_source_info as new_source_info
from minijax.compat.core import register_exclusion as register_exclusion
from minijax.compat.core import summarize as summarize
