# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.backend_names import backends as backends
from minijax.doorways.backend_names import clear_backends as clear_backends
from minijax.doorways.backend_names import get_backend as get_backend
from minijax.doorways.backend_names import get_default_device as get_default_device
