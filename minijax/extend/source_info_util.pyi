# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.source_names import current as current
from minijax.doorways.source_names import new_source_info as new_source_info
from minijax.doorways.source_names import register_exclusion as register_exclusion
from minijax.doorways.source_names import summarize as summarize
