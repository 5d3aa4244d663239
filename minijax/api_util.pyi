# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.flat_arguments import argnums_partial as argnums_partial
from minijax.doorways.flat_arguments import debug_info as debug_info
from minijax.doorways.flat_arguments import donation_vector as donation_vector
from minijax.doorways.flat_arguments import flatten_axes as flatten_axes
from minijax.doorways.flat_arguments import flatten_fun as flatten_fun
from minijax.doorways.flat_arguments import flatten_fun_nokwargs as flatten_fun_nokwargs
from minijax.doorways.flat_arguments import rebase_donate_argnums as rebase_donate_argnums
from minijax.doorways.flat_arguments import safe_map as safe_map
from minijax.doorways.flat_arguments import shaped_abstractify as shaped_abstractify
