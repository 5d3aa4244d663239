"""Kernels in two stages: what was folded and is small, the second one folds again."""

# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.kernels.kernel import fold, load, needed
from minijax.kernels.parts import Affine, Parameter, Store, elements, is_affine
from minijax.kernels.program_steps import Launch
from minijax.kernels.views import Buffer, collapse, of_args
from minijax.threads.partial_folds import assembled, behind_folds, rows_of

SMALL = 32  # a second stage has one index for so many of the first, at most
WORTH = 2**15  # indices of a kernel for which a second launch pays


def has_few(kernel, nodes):
    """Return whether some nodes take few indices, beside those of the whole kernel."""
    most = math.prod(kernel.sizes) // SMALL
    return all(elements(kernel, node.level) <= most for node in nodes)


def second_nodes(kernel):
    """Return the set of folds of few numbers that were folded, and what follows."""
    folds = [node for node in kernel.nodes if node.op == "fold"]
    late, found = behind_folds(kernel.nodes, folds), set()
    for node in kernel.nodes:
        again = node.op == "fold" and node.args[0] in late
        if (again and has_few(kernel, node.args)) or not found.isdisjoint(node.args):
            found.add(node)
    return found


def handed_on(kernel, after):
    """Return what a second stage needs of the first, by nodes, a list."""
    ends = [arg for node in kernel.nodes if node in after for arg in node.args]
    ends = [x for x in dict.fromkeys(ends) if x not in after]
    return [x for x in ends if not has_few(kernel, needed([x]))]


def in_stages(step):
    """Return two launches for one that folds again what it has folded, or None."""
    kernel = step.kernel
    if not is_affine(kernel) or math.prod(kernel.sizes) < WORTH:
        return None
    after = second_nodes(kernel)
    handed = handed_on(kernel, after)
    axes = set.intersection(*[{*x.level} for x in handed]) if handed else set()
    first = [s for s in kernel.stores if s.node not in after and axes <= {*s.axes}]
    second = [store for store in kernel.stores if store not in first]
    again = needed([store.node for store in second], handed)
    before = needed([*handed, *[store.node for store in first]])
    axes -= {axis for x in before if x.op == "fold" for axis in x.detail.axes}
    if not axes or not has_few(kernel, again.difference(after, handed)):
        return None
    return launches_of_stages(step, first, second, handed)


def launches_of_stages(step, first, second, handed):
    """Return the launches of two stages; None if the second reads what the first wrote.

    Args:
      step: the `Launch` of both.
      first, second: their stores.
      handed: nodes, which the first stage stores as well and the second loads.
    """
    kernel, owners = step.kernel, dict(zip(step.kernel.parameters, step.buffers))
    kept, new = [], {}
    for number, x in enumerate(handed):
        strides, size = rows_of(kernel, x)
        between = Parameter(f"stage{number}", x.dtype, size)
        name = f"{step.buffers[-1].name}_{between.name}"
        owners[between] = Buffer(name, x.dtype, size)
        place = Affine(0, tuple(strides))
        kept.append(Store(between, place, x))
        new[x] = load(between, place)
    one = stage_of(kernel, [*first, *kept], {})
    two = stage_of(kernel, second, new)
    read = {node.detail.parameter for node in two.nodes if node.op == "load"}
    if not read.isdisjoint([store.parameter for store in first]):
        return None
    return [Launch(x, [owners[each] for each in x.parameters]) for x in (one, two)]


def stage_of(kernel, stores, new):
    """Return the kernel of some stores; `new` has what is loaded in place of nodes."""
    kept, new, nodes = needed([store.node for store in stores], new), {**new}, []
    for node in [node for node in kernel.nodes if node in kept]:
        args = [new[arg] for arg in node.args if arg in new]
        if node.op == "fold" and node not in new:
            new[node] = fold(node.detail.how, node.detail.axes, *args)
        elif node.args and node not in new:
            new[node] = of_args(node, args)
        new.setdefault(node, node)
        nodes.append(new[node])
    stores = [store.with_nodes(new) for store in stores]
    axes = {axis for node in nodes for axis in node.level}
    axes.update(axis for store in stores for axis in store.axes)
    sizes = [size if axis in axes else 1 for axis, size in enumerate(kernel.sizes)]
    return collapse(assembled(kernel.name, sizes, nodes, stores))
