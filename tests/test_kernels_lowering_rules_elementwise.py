"""Kernels of all primitives at all dtypes: the interpreter's numbers."""

import numpy as np
import pytest

import minijax
from minijax.core import rule_tables
from minijax.kernels.lowering import kernel_rules
from minijax.llvm.codegen import LLVMProgram
from tests import array_cases as cases
from tests import emission_cases
from tests.kernel_cases import alike, compare

WIDE = ("int64", "uint64", "float64", "complex128")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.DTYPES)
def test_elementwise(name):
    with minijax.enable_x64(name in WIDE):
        found = [
            compare(*program) for program in emission_cases.elementwise(name, every=10)
        ]
    assert sum(bool(met) for _, met in found) > 20
    assert not [difference for wrong, _ in found for difference in wrong]


def test_kernels_are_a_column_of_the_grid():
    assert kernel_rules in rule_tables


@pytest.mark.parametrize("name", ["int8", "int32", "uint8", "uint32"])
def test_division_of_integers(name):
    """In machine code: what processors do not agree on."""
    ends = np.iinfo(name)
    x = np.array([ends.min, ends.max, 7, 0, ends.min, 5], name)
    y = np.array([-1 if ends.min else 2, 0, 0, 0, 0, 3]).astype(name)
    for function in (minijax.lax.div, minijax.lax.rem):
        closed = minijax.make_jaxpr(function)(x, y)
        assert alike(LLVMProgram(closed)(x, y)[0], function(x, y))


@pytest.mark.parametrize("name", ["int8", "int32", "uint8", "uint32"])
def test_shifts(name):
    x = cases.specimen(name)
    for function in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        shift = getattr(minijax.lax, function)
        for y in (0, 3, 7, 8, 31, 32, 100, -1):
            y = np.full_like(x, np.array(y).astype(name))
            closed = minijax.make_jaxpr(shift)(x, y)
            assert alike(LLVMProgram(closed)(x, y)[0], shift(x, y))
