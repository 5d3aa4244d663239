# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.autojitting.autojit import autojit as autojit
from minijax.callbacks.callback import io_callback as io_callback
from minijax.experimental import checkify as checkify
from minijax.experimental import jet as jet
from minijax.experimental import layout as layout
from minijax.experimental import mesh_utils as mesh_utils
from minijax.experimental import multihost_utils as multihost_utils
from minijax.experimental import ode as ode
from minijax.experimental import pjit as pjit
from minijax.experimental import shard_map as shard_map
from minijax.experimental import sparse as sparse
