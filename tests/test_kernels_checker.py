"""The checker: what it refuses, and why."""

import numpy as np
import pytest

from minijax.kernels.builder import scan_node
from minijax.kernels.checker import KernelError, check_kernel
from minijax.kernels.ir import (
    Affine,
    Fold,
    Guard,
    IndirectTerm,
    Load,
    Parameter,
    Store,
    Update,
)
from minijax.kernels.loop_nests import (
    Kernel,
    Node,
    constant_node,
    fold_node,
    index_node,
    load_node,
    op_node,
)

F32, I32 = np.dtype("float32"), np.dtype("int32")
X, N, OUT = Parameter("x", F32, 12), Parameter("n", I32, 12), Parameter("out", F32, 12)
ALL, ROWS = Affine(0, (4, 1)), Affine(0, (1, 0))
x, n = load_node(X, ALL), load_node(N, ALL)
p = op_node("lt", x, x)


def kernel(*nodes, sizes=(3, 4), place=ALL, out=OUT, store=None):
    node = nodes[-1] if store is None else store
    return Kernel("test", sizes, (X, N, out), nodes, (Store(out, place, node),))


def changed(node, **fields):
    names = ("op", "args", "dtype", "level", "detail")
    return Node(**{name: getattr(node, name) for name in names} | fields)


v = load_node(Parameter("v", np.dtype("int64"), 3), ROWS)
BOOLS, LONGS = Parameter("out", p.dtype, 12), Parameter("out", v.dtype, 12)
COLUMNS, FOUR = Affine(0, (0, 1)), IndirectTerm(4, 3)


def gathering(term=FOUR, place=COLUMNS, number=v, **fields):
    """A kernel that reads rows at computed places."""
    a = changed(load_node(X, place, (), 0, [(number, term)]), **fields)
    nodes = (number, a)
    parameters = (X, number.detail.parameter, OUT)
    return Kernel("test", (3, 4), parameters, nodes, (Store(OUT, ALL, a),))


def scattering(how="add", at=(v,), terms=(FOUR,), axes=(0, 1), distinct=False, **more):
    """A kernel that stores rows at computed places."""
    update = Update(how, at, terms, axes, distinct)
    node, place = more.get("node", x), more.get("place", COLUMNS)
    out = more.get("out", OUT)
    stores = (Store(out, place, node, update), *more.get("others", ()))
    parameters = (X, N, v.detail.parameter, out)
    return Kernel("test", (3, 4), parameters, (x, n, v, *more.get("nodes", ())), stores)


# Every second element, from the second one: the imaginary parts of complex numbers.
ADDED = Update("add", (v,), (IndirectTerm(2, 2),), (0, 1), False)
ODD = Store(OUT, Affine(1, (0, 2)), x, ADDED)

FINE = [
    gathering(),
    gathering(IndirectTerm(4, 0)),
    gathering(IndirectTerm(-4, 3), Affine(8, (0, 1))),
    *[scattering(how) for how in ("set", "add", "mul", "min", "max")],
    scattering(distinct=True),
    scattering(place=Affine(0, (0, 2)), terms=(IndirectTerm(2, 2),), others=(ODD,)),
    scattering(at=(), terms=(), place=Affine(0, (0, 0))),
    kernel(x, scan_node("add", 1, x)),
]


@pytest.mark.parametrize("number", range(len(FINE)))
def test_accepts_computed_places(number):
    assert check_kernel(FINE[number]) is FINE[number]


WRONG = {
    "before its arguments": kernel(op_node("exp", x)),
    "no such operation": kernel(x, changed(op_node("exp", x), op="exponential")),
    "takes 2 operands": kernel(x, changed(op_node("add", x, x), args=(x,))),
    "selects by a bool": kernel(x, op_node("select", x, x, x)),
    "have dtypes": kernel(x, n, op_node("add", x, n)),
    "is not for int32": kernel(n, op_node("exp", n), out=Parameter("out", I32, 12)),
    "node 1, exp: its dtype": kernel(x, changed(op_node("exp", x), dtype=I32)),
    "not that of its arguments": kernel(x, changed(op_node("exp", x), level=(0,))),
    "keeps the number of bits": kernel(
        x, op_node("bitcast", x, dtype=np.dtype("int64"))
    ),
    "no such axis": kernel(index_node(2)),
    "no such way": kernel(
        x, changed(fold_node("add", (1,), x), detail=Fold("mean", (1,)))
    ),
    "fold: it is not for": kernel(x, p, fold_node("add", (1,), p)),
    "no such axes": kernel(x, fold_node("add", (2,), x)),
    "folds one axis": kernel(x, fold_node("argmax", (0, 1), x)),
    "fold: its level": kernel(x, changed(fold_node("add", (1,), x), level=(0, 1))),
    "behind those it folds": kernel(
        x, fold_node("add", (0,), x), place=Affine(0, (0, 1))
    ),
    "elements 0 to 13": kernel(load_node(X, Affine(0, (5, 1)))),
    "elements -1 to 10": kernel(load_node(X, Affine(-1, (4, 1)))),
    "load: its dtype": kernel(changed(x, dtype=I32)),
    "load: its level": kernel(changed(x, level=(0,))),
    "further axes": kernel(x, place=ROWS),
    "into one element": kernel(x, place=Affine(0, (3, 1))),
    "store into out: its dtype": kernel(n),
    "store into out: it reaches": kernel(x, place=Affine(1, (4, 1))),
    "no node of the kernel": kernel(x, store=constant_node(1, F32)),
    "both read and written": kernel(x, out=X),
    "two have one name: x n x": kernel(x, out=Parameter("x", F32, 15)),
    "load: it reaches elements 0 to 15": gathering(IndirectTerm(4, 4)),
    "load: it reaches elements -8 to 3": gathering(IndirectTerm(-4, 3)),
    "load: it reaches elements 9 to 20": gathering(place=Affine(9, (0, 1))),
    "computed number needs a limit": gathering(
        detail=Load(X, COLUMNS, (), F32.type(0), ())
    ),
    "a computed place is not int64": gathering(number=load_node(N, ROWS)),
    "load: its level is wrong": gathering(level=(1,)),
    "into out: it reaches elements 0 to 15": scattering(terms=(IndirectTerm(4, 4),)),
    "into out: a computed place is not": scattering(at=(n,)),
    "into out: each computed number": scattering(at=(v, v)),
    "no such way to store": scattering("sub"),
    "into out: it is not for bool": scattering(node=p, nodes=(p,), out=BOOLS),
    "not those of the kernel, in order": scattering(axes=(1, 0)),
    "its place moves along further axes": scattering(axes=(1,), node=v, out=LONGS),
    "the scalar varies over further axes": scattering(axes=(1,), at=(), terms=()),
    "into out: two indices store into": scattering(
        place=Affine(0, (0, 0)), distinct=True
    ),
    "another store has the same parameter": scattering(others=(Store(OUT, ALL, x),)),
    "it stores what is no node": scattering(at=(index_node(0),)),
    "it runs along one axis": kernel(
        x, changed(fold_node("add", (0, 1), x), op="running")
    ),
    "running: there is no such way": kernel(
        x, changed(scan_node("add", 1, x), detail=Fold("mean", (1,)))
    ),
    "running: it keeps axes behind": kernel(x, scan_node("add", 0, x)),
    "running: its level": kernel(x, changed(scan_node("add", 1, x), level=(0,))),
    "running: it is not for bool": kernel(x, p, scan_node("add", 1, p)),
}


@pytest.mark.parametrize("complaint", WRONG)
def test_refuses(complaint):
    with pytest.raises(KernelError, match=complaint) as error:
        check_kernel(WRONG[complaint])
    assert "test(x:f32[12]" in str(error.value)


def test_refuses_buffers_that_are_not_listed():
    broken = Kernel("test", (3, 4), (X,), (x,), (Store(OUT, ALL, x),))
    with pytest.raises(KernelError, match="not in the list"):
        check_kernel(broken)


def test_accepts():
    guards = [Guard(Affine(-1, (1, 0)), 3), Guard(Affine(-2, (0, 1)), 4)]
    shifted = load_node(X, Affine(-6, (4, 1)), guards)
    for good in (
        kernel(x),
        kernel(x, fold_node("add", (1,), x), place=ROWS),
        kernel(x, fold_node("add", (0, 1), x), place=Affine(3, (0, 0))),
        kernel(constant_node(1, F32)),
        kernel(
            shifted,
            sizes=(5, 8),
            out=Parameter("out", F32, 40),
            place=Affine(0, (8, 1)),
        ),
        kernel(load_node(X, Affine(99, (4, 1))), sizes=(3, 0)),
    ):
        assert check_kernel(good) is good


def test_guards_know_multiples():
    """As for a convolution: the place is a multiple of what the guard looks at."""
    row = Affine(-1, (2, 1, 0))  # 2 * i + j - 1, of 3 rows of 4 elements
    place = Affine(-4, (8, 4, 1))
    guarded = load_node(X, place, [Guard(row, 3)])
    kernel = Kernel("rows", (2, 3, 4), (X, OUT), (guarded,), ())
    check_kernel(kernel)
    with pytest.raises(KernelError, match="elements -4 to 15"):
        check_kernel(Kernel("rows", (2, 3, 4), (X, OUT), (load_node(X, place),), ()))


def test_large_kernels_are_checked_at_once():
    size = 2**40
    big = Parameter("x", F32, size), Parameter("out", F32, size)
    a = load_node(big[0], Affine(0, (2**20, 1)))
    stores = (Store(big[1], Affine(0, (2**20, 1)), a),)
    check_kernel(Kernel("big", (2**20, 2**20), big, (a,), stores))
