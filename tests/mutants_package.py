"""Faults of the package as a whole, brought back on purpose: the batteries find them.

A mutant is a text that a cold process runs before it uses the package. `switched_on`
names one for all cold processes that are started inside of it.
"""

import os
from contextlib import contextmanager

VARIABLE = "MINIJAX_MUTANT"

MUTANTS = {
    # What is done to the loop nest of a kernel was known only when certain modules had
    # been imported, and in which order.
    "changes of nests as they come": """
import sys
import minijax.vectorization.schedules as kernels

ALL, FEW = kernels.SCHEDULE_PASSES, (kernels.vectorize_loops, kernels.annotate_loops)

class AsTheyCome:
    def __iter__(self):
        names = [*sys.modules]
        first = "minijax.dispatch.fastpath_functions"
        other = "minijax.windows.reduce_window"
        early = first in names and names.index(first) < names.index(other)
        return iter(ALL if early else FEW)

kernels.SCHEDULE_PASSES = AsTheyCome()
""",
    # Another thread's running import was taken for one's own, so that a name was handed
    # out before the operators were there.
    "first use by threads": """
import sys
import minijax._lazy as lazy

def too_early():
    ours = [name for name in [*sys.modules] if name.startswith("minijax.")]
    specs = [getattr(sys.modules.get(name), "__spec__", None) for name in ours]
    return any(getattr(spec, "_initializing", False) for spec in specs)

lazy.is_importing = too_early
""",
    # A thread inside a half imported module waited for the lock of one that waited
    # for this module.
    "waiting inside an import": """
import minijax._lazy as lazy
after_registrations = lazy.after_registrations

def waiting(load):
    with lazy._lock:
        return after_registrations(load)

lazy.after_registrations = waiting
""",
    # A child was forked while another thread was loading, and waited for it forever.
    "lock held over a fork": """
import os
os.register_at_fork = lambda **hooks: None
import minijax._lazy
""",
    # A placeholder of a low floor came into a table after what had replaced it.
    "the last one wins": """
from minijax._registry import Registry

Registry.__setitem__ = lambda table, key, value: table.enter(key, value)
import minijax.numpy.indexing
from minijax.numpy import operators as methods
from minijax.numpy import array_methods as syntax

syntax.register_methods({"at": methods.at})
""",
}


@contextmanager
def switched_on(name):
    """Bring a fault back in the cold processes that are started inside."""
    assert name in MUTANTS
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def prelude():
    """What a cold process runs first: the mutant that is switched on, or nothing."""
    return MUTANTS.get(os.environ.get(VARIABLE), "")
