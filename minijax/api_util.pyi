# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.compat.linear_util import argnums_partial as argnums_partial
from minijax.compat.linear_util import debug_info as debug_info
from minijax.compat.linear_util import donation_vector as donation_vector
from minijax.compat.linear_util import flatten_axes as flatten_axes
from minijax.compat.linear_util import flatten_fun as flatten_fun
from minijax.compat.linear_util import flatten_fun_nokwargs as flatten_fun_nokwargs
from minijax.compat.linear_util import rebase_donate_argnums as rebase_donate_argnums
from minijax.compat.linear_util import safe_map as safe_map
from minijax.compat.linear_util import shaped_abstractify as shaped_abstractify
