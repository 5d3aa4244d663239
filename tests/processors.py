"""Processors whose code can be run on this one."""

from minijax.llvm.targets import FORCED_TARGETS, forced_target, host_target


def runnable_kinds():
    """Return names for the switch `minijax_cpu`, without those that are too wide."""
    host = host_target()
    names = FORCED_TARGETS if host.triple.startswith("x86_64") else ["plain"]
    return [n for n in names if forced_target(n).vector_bytes <= host.vector_bytes]
