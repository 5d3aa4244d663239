"""Places beyond 32 bits, in memory that is promised and never touched in between."""

import mmap
import sys

import numpy as np
import pytest

from minijax.kernels.builder import collapse_axes
from minijax.kernels.ir import Affine, Guard, Parameter, Store
from minijax.kernels.loop_nests import Kernel, fold_node, load_node, op_node
from minijax.llvm.codegen import emit_llvm, module_ir
from minijax.llvm.compiler import Library
from minijax.llvm.targets import TargetLibrary, current_target, kernel_function

FAR = 2**33  # elements; their places take 34 bits, their addresses 36
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # promised, with no reserve
FLOAT = np.dtype("float32")


@pytest.fixture(scope="module")
def far():
    """A parameter of 2 * FAR + 64 numbers, all of which the system only promises."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        memory = mmap.mmap(-1, (2 * FAR + 64) * 4, flags=flags)
    except OSError as error:
        pytest.skip(f"no addresses for it here: {error}")
    yield np.frombuffer(memory, FLOAT)


def doubled(sizes, place, guards=()):
    """A kernel that doubles what it finds at a place of a large parameter."""
    x = Parameter("x", FLOAT, 2 * FAR + 64)
    out = Parameter("out", FLOAT, int(np.prod(sizes)))
    a = load_node(x, place, guards, -1.0)
    b = op_node("add", a, a)
    strides = (sizes[1], 1) if len(sizes) == 2 else (1,)
    stores = (Store(out, Affine(0, strides), b),)
    return collapse_axes(Kernel("doubled", sizes, (x, out), (a, b), stores))


def total(sizes, place):
    """A kernel that adds up what it finds along the last axis."""
    x, out = Parameter("x", FLOAT, 2 * FAR + 64), Parameter("out", FLOAT, sizes[0])
    a = load_node(x, place)
    s = fold_node("add", (1,), a)
    return Kernel("total", sizes, (x, out), (a, s), (Store(out, Affine(0, (1, 0)), s),))


KERNELS = {
    "offset": doubled((40,), Affine(2 * FAR, (1,))),
    "backwards": doubled((40,), Affine(2 * FAR + 39, (-1,))),
    "stride": doubled((3, 20), Affine(5, (FAR, 1))),
    "guard": doubled((40,), Affine(2 * FAR, (1,)), [Guard(Affine(FAR, (1,)), FAR + 7)]),
    "sum of rows": total((3, 20), Affine(5, (FAR, 1))),
}


def scalar(kernel):
    return Library(emit_llvm({"f": kernel}))


def vectors(kernel):
    target = current_target()
    text = module_ir([kernel_function(kernel, "f", target)])
    return TargetLibrary(text, target)


@pytest.mark.parametrize("machine", [scalar, vectors])
@pytest.mark.parametrize("name", KERNELS)
def test_far_away(name, machine, far):
    kernel = KERNELS[name]
    for start in (0, FAR, 2 * FAR):
        far[start : start + 64] = np.arange(64) + start % 1000
    out = np.zeros(kernel.parameters[1].size, "float32")
    machine(kernel).function("f", 2)(far.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, wanted(kernel, far))


def wanted(kernel, far):
    """What a loop of Python finds."""
    detail = next(node.detail for node in kernel.nodes if node.op == "load")
    found = np.empty(kernel.sizes, "float32")
    for indices in np.ndindex(*kernel.sizes):
        inside = all(0 <= g.place.at(indices) < g.limit for g in detail.guards)
        found[indices] = far[detail.place.at(indices)] if inside else detail.fill
    return found.sum(1) if kernel.name == "total" else 2 * found.ravel()
