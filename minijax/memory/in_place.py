"""Kernels that write their result over an operand."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.parts import is_affine
from minijax.kernels.program_steps import Launch
from minijax.memory.overwriting import apart, in_one_sweep, parameters_of


def may_overwrite(step, old, new):
    """Return whether a step may write its result `new` where its operand `old` is.

    It may, if it is a kernel that reads each element of `old` at the place where it
    writes one of `new`, and before. No later step may need `old`.
    """
    if type(step) is not Launch or (old.dtype, old.size) != (new.dtype, new.size):
        return False
    sources, targets = parameters_of(step, old), parameters_of(step, new)
    if len(sources) != 1 or len(targets) != 1:
        return False
    usual = _element_by_element(step.kernel, sources[0], targets[0])
    return usual and is_affine(step.kernel)


def _element_by_element(kernel, source, target):
    loads = [n for n in kernel.nodes if n.op == "load" and n.detail.parameter == source]
    stores = [store for store in kernel.stores if store.parameter == target]
    places = {store.place for store in stores}
    if source.dtype != target.dtype or not loads or not apart(places):
        return False
    if any(x.detail.guards or x.detail.place not in places for x in loads):
        return False
    return in_one_sweep(kernel, loads, stores)
