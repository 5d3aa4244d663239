# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.distributed.processes import initialize as initialize
from minijax.distributed.processes import is_initialized as is_initialized
from minijax.distributed.processes import shutdown as shutdown
