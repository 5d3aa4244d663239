"""Kernels of primitives that rearrange, join and fold: the interpreter's numbers."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.kernels.lowering import kernel_rules
from tests import array_cases as cases
from tests import emission_cases
from tests.commands import some
from tests.kernel_cases import compare

WIDE = ("int64", "uint64", "float64", "complex128")


def check(programs, least):
    found = [compare(*program) for program in programs]
    assert sum(bool(met) for _, met in found) > least
    assert not [difference for wrong, _ in found for difference in wrong]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.DTYPES)
def test_dtypes(name):
    with minijax.enable_x64(name in WIDE):
        check(emission_cases.mixed(name), 10)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", [emission_cases.texts, emission_cases.compositions])
def test_compositions(family):
    check(some(family(), 2), 10)


PADDINGS = [
    (0, 0, 0),
    (2, 1, 0),
    (-1, 2, 0),
    (-2, -1, 0),
    (1, 0, 2),
    (-3, 2, 1),
    (5, -6, 1),
]


@pytest.mark.parametrize(
    "first, second", some(itertools.product(PADDINGS, PADDINGS), 2)
)
def test_padding(first, second):
    x = np.arange(20, dtype="float32").reshape(4, 5) + 1
    z = x + 1j * x
    for operand, value in (
        (x, np.float32(7)),
        (z.astype("complex64"), np.complex64(7)),
    ):
        check(
            [("pad", lambda x, v: lax.pad(x, v, (first, second)), [operand, value])], 0
        )
        check([("pad", lambda x: lax.pad(x, value, (first, second)), [operand])], 0)  # noqa: B023


def test_padding_of_nothing():
    nothing = np.zeros((0, 3), "float32")
    for config in (((2, 1, 0), (0, 0, 0)), ((2, 1, 3), (1, 1, 0))):
        check([("pad", lambda x, c=config: lax.pad(x, np.float32(1), c), [nothing])], 0)


def test_nothing_is_put_into_one_element():
    """No loop would go through the axis, were its stride 0 as that of the element."""
    one, nothing = np.ones(1, "float32"), np.zeros(0, "float32")
    check([("pad", lambda x: lax.pad(x, np.float32(7), ((1, 0, 0),)), [nothing])], 0)
    check([("join", lambda x, y: lax.concatenate([x, y], 0), [nothing, one])], 0)
    check([("join", lambda x, y: lax.concatenate([y, x], 0), [nothing, one])], 0)


@pytest.mark.parametrize(
    "shape", [(), (1,), (0,), (3,), (2, 0, 3), (1, 3, 1), (2, 3, 4)]
)
def test_shapes(shape):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    programs = [
        ("add", lambda x: x + 1.0, [x]),
        ("sum", lambda x: x.sum(), [x]),
        ("copy", lambda x: lax.transpose(x, range(x.ndim)[::-1]), [x]),
        ("max", lambda x: lax.reduce_max(x, tuple(range(x.ndim))[:1]), [x]),
        ("join", lambda x: jnp.concatenate([x[None], x[None]]), [x]),
    ]
    check(programs, 3)


def test_rule_or_reason():
    for primitive in shape_rules:
        known = {*kernel_rules, *kernel_rules.reasons}
        assert primitive in known, primitive
