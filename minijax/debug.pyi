# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.callbacks.debugger import debug_breakpoint as _debug_breakpoint
from minijax.callbacks.debugging import debug_callback as _debug_callback
from minijax.callbacks.debugging import debug_print as _debug_print
breakpoint = _debug_breakpoint
callback = _debug_callback
print = _debug_print
