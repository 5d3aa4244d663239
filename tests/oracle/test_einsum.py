"""Einstein summations beside real JAX: values, programs, paths, classes of errors."""

import itertools
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
import minijax.numpy  # noqa: E402
from tests.einsum_cases import LONG, MISTAKES, SHAPES  # noqa: E402

SILENT = re.compile(r"\s+(out_sharding|sharding|dimensions)=None")
SPACE = re.compile(r"\s+")
ALL = SHAPES | LONG
DTYPES = "float32", "int32", "bool", "complex64"
OPTIONS = {}, {"optimize": False}, {"optimize": "optimal"}
RAISED = ValueError, TypeError, NotImplementedError, KeyError


def operands(spec, dtype):
    rng = np.random.default_rng(5)
    return [rng.integers(0, 3, shape).astype(dtype) for shape in ALL[spec]]


@pytest.mark.parametrize(("spec", "dtype"), [*itertools.product(ALL, DTYPES)])
def test_programs_and_values(spec, dtype):
    xs = operands(spec, dtype)
    for options in OPTIONS:
        texts, values = [], []
        for package in (minijax, jax):
            call = package.numpy.einsum
            program = package.make_jaxpr(lambda *xs: call(spec, *xs, **options))(*xs)  # noqa: B023
            texts.append(SPACE.sub(" ", SILENT.sub("", str(program))))
            values.append(call(spec, *xs, **options))
        assert texts[0] == texts[1]
        np.testing.assert_allclose(*values, rtol=1e-5)
        ours, theirs = values
        assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("dtypes", [("int8", "float32"), ("int32", "float16")])
def test_two_dtypes(dtypes):
    xs = [np.ones((2, 2), dtype) for dtype in dtypes]
    for preferred in (None, "float32"):
        ours, theirs = (
            package.numpy.einsum("ij,jk", *xs, preferred_element_type=preferred)
            for package in (minijax, jax)
        )
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("optimize", [True, False, "auto", "greedy"])
def test_paths(spec, optimize):
    xs = operands(spec, "float32")
    found = [
        package.numpy.einsum_path(spec, *xs, optimize=optimize)
        for package in (minijax, jax)
    ]
    (path, info), (their_path, their_info) = found
    assert [*map(tuple, path)] == [*map(tuple, their_path)]
    assert info.eq == their_info.eq
    assert info.opt_cost == int(their_info.opt_cost)
    assert info.naive_cost == int(their_info.naive_cost)
    assert info.largest_intermediate == int(their_info.largest_intermediate)


@pytest.mark.parametrize("name", MISTAKES)
def test_classes_of_errors(name):
    found = []
    for package in (minijax, jax):
        with pytest.raises(RAISED) as caught:
            MISTAKES[name](package.numpy, package.numpy.ones((2, 3)))
        found.append(caught.type)
    assert found[0] == found[1]


MIXED = [("int32", "float32"), ("bfloat16", "float32"), ("float32", "complex64"),
         ("uint8", "int8"), ("bool", "int32"), ("float16", "bfloat16")]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), MIXED)
def test_two_dtypes_are_one_product(one, other):
    told = []
    for m in (minijax, jax):
        x, y = m.numpy.ones((2, 3), one), m.numpy.ones((3, 2), other)
        told.append([
            str(m.make_jaxpr(lambda x, y: m.numpy.einsum(text, x, y))(x, y))  # noqa: B023
            for text in ("ab,bc->ac", "ab,ba->", "ab,cd->abcd", "ab,bc->ca")
        ])  # fmt: skip
        with m.numpy_dtype_promotion("strict"), pytest.raises(ValueError):
            m.numpy.einsum("ab,bc", x, y)
    assert told[0] == told[1]
