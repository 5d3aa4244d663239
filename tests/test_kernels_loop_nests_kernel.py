"""Kernels as data: places, levels, text, labels, facts."""

import itertools

import numpy as np
import pytest

from minijax.kernels.ir import (
    Affine,
    Guard,
    Parameter,
    Store,
    bytes_accessed,
    flops_and_transcendentals,
)
from minijax.kernels.loop_nests import (
    Kernel,
    backward_slice,
    constant_node,
    fold_node,
    index_node,
    load_node,
    op_node,
)

F32 = np.dtype("float32")
X, OUT = Parameter("x", F32, 12), Parameter("out", F32, 12)


@pytest.mark.parametrize(
    "place, text",
    [
        (Affine(0, ()), "0"),
        (Affine(-3, ()), "-3"),
        (Affine(0, (3, 1)), "3*i + j"),
        (Affine(5, (0, -1)), "-j + 5"),
        (Affine(-2, (-3, 1)), "-3*i + j - 2"),
    ],
)
def test_affine_text(place, text):
    assert str(place) == text


def test_affine_bounds_are_reached():
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(1, 5, 3)
        place = Affine(int(rng.integers(-9, 9)), tuple(rng.integers(-4, 5, 3)))
        numbers = [place.at(i) for i in itertools.product(*map(range, sizes))]
        assert place.bounds(sizes) == (min(numbers), max(numbers))


def test_levels():
    x = load_node(X, Affine(0, (4, 1)))
    row = fold_node("max", (1,), x)
    assert (x.level, row.level) == ((0, 1), (0,))
    assert constant_node(1, F32).level == () and index_node(2).level == (2,)
    assert op_node("sub", row, index_node(2)).level == (0, 2)
    padded = load_node(X, Affine(0, (0, 1)), [Guard(Affine(-1, (1, 0)), 3)])
    assert padded.level == (0, 1)


def test_dtypes():
    half = Parameter("h", np.dtype("float16"), 12)
    assert load_node(half, Affine(0, (1,))).dtype == F32
    x = load_node(X, Affine(0, (1,)))
    assert op_node("lt", x, x).dtype == bool and op_node("add", x, x).dtype == F32
    assert fold_node("argmax", (0,), x).dtype == np.int64
    assert op_node("convert", x, dtype=half.dtype).dtype == F32


def kernel(name="rows", op="exp"):
    x = load_node(X, Affine(2, (4, 1)), [Guard(Affine(0, (1, 0)), 2)], 7)
    y = op_node(op, x)
    z = op_node("mul", y, two := constant_node(2, F32))
    s = fold_node("add", (1,), z)
    stores = (Store(OUT, Affine(0, (1, 0)), s),)
    return Kernel(name, (3, 4), (X, OUT), (x, y, two, z, s), stores)


def test_needed():
    x = load_node(X, Affine(0, (4, 1)))
    row = fold_node("max", (1,), x)
    y = op_node("sub", x, row)
    z = op_node("mul", y, row)
    assert backward_slice([z]) == backward_slice([z, x]) == {z, y, row, x}
    assert backward_slice([z], [row]) == {z, y, row, x}
    assert backward_slice([z], {y, row}) == {z, y, row}
    assert backward_slice(iter([row]), [row]) == {row} and backward_slice([]) == set()
    for _ in range(5000):
        z = op_node("add", z, z)
    assert len(backward_slice([z])) == 5004


def test_text():
    assert str(kernel()) == (
        "rows(x:f32[12], out:f32[12]) for i < 3, j < 4\n"
        "  v0:f32[i,j] = load x[4*i + j + 2] if 0 <= i < 2 else 7.0\n"
        "  v1:f32[i,j] = exp v0\n"
        "  v2:f32[i,j] = mul v1 2.0:f32\n"
        "  v3:f32[i] = fold add over j of v2\n"
        "  out[i] = v3"
    )


def test_labels():
    assert kernel().label == kernel().label != kernel(op="log").label
    assert kernel("my-op").label.startswith("my_op_")


def test_facts():
    assert bytes_accessed(kernel()) == (48, 12)
    assert flops_and_transcendentals(kernel()) == {"flops": 24, "transcendentals": 12}
