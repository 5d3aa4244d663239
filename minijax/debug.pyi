# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.callbacks.debugger import debug_breakpoint as _debug_breakpoint
from minijax.callbacks.debugger import debug_log as _debug_log
from minijax.callbacks.host_calls import debug_callback as _debug_callback
from minijax.callbacks.host_calls import debug_print as _debug_print
from minijax.sharding.visualization import inspect_array_sharding as _inspect_array_sharding
from minijax.sharding.visualization import visualize_array_sharding as _visualize_array_sharding
from minijax.sharding.visualization import visualize_sharding as _visualize_sharding
breakpoint = _debug_breakpoint
callback = _debug_callback
inspect_array_sharding = _inspect_array_sharding
log = _debug_log
print = _debug_print
visualize_array_sharding = _visualize_array_sharding
visualize_sharding = _visualize_sharding
