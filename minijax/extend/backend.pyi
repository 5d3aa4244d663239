# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.compat.core import backends as backends
from minijax.compat.core import clear_backends as clear_backends
from minijax.compat.core import get_backend as get_backend
from minijax.compat.core import get_default_device as get_default_device
