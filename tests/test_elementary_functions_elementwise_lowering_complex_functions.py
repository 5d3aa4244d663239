"""Functions of complex numbers as kernels, at ends, at sizes around vectors."""

import itertools
from functools import cache

import numpy as np
import pytest

import minijax
from minijax import jit, lax
from minijax import numpy as jnp
from minijax.elementary_functions.elementwise_lowering import EXP_IS_FINITE
from minijax.kernels.builder import complex_rules
from minijax.kernels.lowering import Evaluate, lower
from tests.commands import some
from tests.special_values import compared, primitive_cases

NAMES = "exp expm1 sinh cosh tanh sin cos tan sqrt log log1p rsqrt logistic".split()
MADE = [name for name in NAMES if name in complex_rules]
BACKENDS = ["kernels", "llvm", "cpu"]
WIDE = {"complex64": "complex128", "complex128": "clongdouble"}


@pytest.fixture(autouse=True)
def with_64_bits():
    """Compute in 64 bits where that is asked for; say nothing of overflow."""
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        yield


def numbers(dtype, count, scale=1.0):
    """Complex numbers around 0; their sizes are spread if the scale is None."""
    rng, part = np.random.default_rng(5), np.zeros(0, dtype).real.dtype
    if scale is None:
        span = np.log(np.finfo(part).max) / 2.5
        parts = rng.choice([-1, 1], (count, 2)) * np.exp(
            rng.uniform(-span, span, (count, 2))
        )
    else:
        parts = rng.normal(0, scale, (count, 2))
    return np.ascontiguousarray(parts, part).view(dtype)[:, 0]


def exact(name, z):
    """The values of a function, in twice as many bits."""
    w = z.astype(WIDE[z.dtype.name])
    x, y = w.real, w.imag
    if name == "expm1":
        fall = 2 * np.sin(y / 2) ** 2
        return np.expm1(x) * np.cos(y) - fall + 1j * np.exp(x) * np.sin(y)
    if name == "log1p":
        near = np.log1p(x * (2 + x) + y * y) / 2 + 1j * np.arctan2(y, 1 + x)
        return np.where(abs(w) < 0.5, near, np.log(1 + w))
    return getattr(np, name)(w)


def error(ours, right):
    """The largest error, as a part of the size of the result, in last places."""
    info = np.finfo(ours.dtype)
    inside = (abs(right) < info.max) & (abs(right) > info.tiny)
    assert inside.mean() > 0.5
    assert np.isfinite(ours[inside]).all()
    return (abs(ours - right) / abs(right))[inside].max() / info.eps


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("scale", [0.01, 1, 20, None])
def test_values(name, dtype, scale):
    if scale is None and name not in ("sqrt", "log", "log1p"):
        scale = 1e-8
    z = numbers(dtype, 3000, scale)
    ours = np.asarray(jit(getattr(lax, name), backend="cpu")(z))
    assert ours.dtype == dtype
    assert error(ours, exact(name, z)) < 4


@cache
def all_cases():
    return [*primitive_cases()]


def cases_of(name):
    """The cases of a primitive of complex numbers."""
    return [case for case in all_cases() if case[0].startswith(f"{name}(comp")]


@pytest.mark.parametrize("name, backend", some(itertools.product(NAMES, BACKENDS), 2))
def test_ends(name, backend):
    """Infinities, NaN, zeros of either sign, in both parts: as it is evaluated."""
    cases = cases_of(name)
    assert len(cases) == 2
    assert not [found for case in cases if (found := compared(case, backend))]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [x for x in MADE if x not in ("expm1", "log1p")])
def test_signs_at_ends(name, backend):
    """Each part by itself: which are NaN, and the sign of all others."""
    [(_, _, [z]), _] = cases_of(name)
    ours, right = (
        np.asarray(jit(getattr(lax, name), backend=backend)(z)),
        getattr(np, name)(z),
    )
    for part, other in ((ours.real, right.real), (ours.imag, right.imag)):
        known = ~np.isnan(other)
        np.testing.assert_array_equal(~np.isnan(part), known)
        np.testing.assert_array_equal(np.signbit(part)[known], np.signbit(other)[known])
        np.testing.assert_array_equal(np.isinf(part), np.isinf(other))


@pytest.mark.parametrize("name", NAMES)
def test_is_a_kernel(name):
    program = lower(minijax.make_jaxpr(getattr(lax, name))(jnp.ones(3, "complex64")))
    assert not any(isinstance(step, Evaluate) for step in program.steps)


COUNTS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 67]


@pytest.mark.parametrize("name, count", some(itertools.product(MADE, COUNTS), 2))
def test_sizes(name, count):
    z = numbers("complex64", count)
    for x in (z, np.repeat(z, 2)[::2]):
        ours = np.asarray(jit(getattr(lax, name), backend="cpu")(x))
        np.testing.assert_allclose(ours, exact(name, z), 1e-5, 1e-6)


@pytest.mark.parametrize("dtype", WIDE)
def test_no_overflow_on_the_way(dtype):
    """A factor is infinite, the product is not."""
    part = np.zeros(0, dtype).real.dtype
    end, info = EXP_IS_FINITE[part.name], np.finfo(part)
    z = np.array([[end * 1.5, info.tiny * 8], [end + 1, np.pi / 2]], part)
    z = z.view(dtype)[:, 0]
    for name in ("exp", "sinh", "cosh", "expm1"):
        ours = np.asarray(jit(getattr(lax, name), backend="cpu")(z))
        right = exact(name, z)
        np.testing.assert_allclose(ours.imag[0], right.imag[0], 1e-4)
        np.testing.assert_allclose(ours.real[1], right.real[1], 1e-4)


@pytest.mark.parametrize("dtype", WIDE)
def test_roots_and_logarithms_of_huge_and_tiny_numbers(dtype):
    info = np.finfo(dtype)
    sizes = [info.max, info.max / 3, info.tiny, info.smallest_subnormal * 5, 1.0]
    pairs = [
        (s * x, t * y) for x in sizes for y in sizes for s in (1, -1) for t in (1, -1)
    ]
    z = np.array(pairs, np.zeros(0, dtype).real.dtype).view(dtype)[:, 0]
    for name in ("sqrt", "log"):
        ours = np.asarray(jit(getattr(lax, name), backend="cpu")(z))
        assert error(ours, exact(name, z)) < 4


@pytest.mark.parametrize("dtype", WIDE)
def test_logarithms_near_one(dtype):
    """Where |z| is almost 1, the real part keeps its digits."""
    part = np.zeros(0, dtype).real.dtype
    t = np.random.default_rng(2).uniform(0, 7, 500).astype(part)
    z = np.stack([np.cos(t), np.sin(t)], 1).astype(part).view(dtype)[:, 0]
    ours = np.asarray(jit(lax.log, backend="cpu")(z))
    x, y = (np.longdouble(w) for w in (z.real, z.imag))
    right = np.log1p((x - 1) * (x + 1) + y * y) / 2
    if dtype == "complex64":
        np.testing.assert_allclose(ours.real, right, 1e-5)
    np.testing.assert_allclose(ours.real, right, 0, np.finfo(part).eps)


def test_branches():
    """On both sides of the cuts."""
    z = np.array([[-4, 0.0], [-4, -0.0]], "float32").view("complex64")[:, 0]
    root, log = (np.asarray(jit(f)(z)) for f in (lax.sqrt, lax.log))
    assert root.tolist() == [2j, -2j]
    np.testing.assert_allclose(log.imag, [np.pi, -np.pi], 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_are_numpys(dtype):
    """As NumPy's, whose whole exponents are products; infinities apart."""
    ends = np.array([0.0, -0.0, 1.0, -1.5, 3.0, 1e-20])
    z, w = np.meshgrid(np.add.outer(ends, 1j * ends), np.add.outer(ends, 1j * ends))
    z, w = z.ravel().astype(dtype), w.ravel().astype(dtype)
    with np.errstate(all="ignore"):
        wanted = z**w
        wide = z.astype("complex128") ** w
    f = minijax.jit(lambda z, w: z**w)
    found, program = np.asarray(f(z, w)), f.lower(z, w).compile()
    assert "pow_" in program.as_text("steps")  # a kernel, and no step of NumPy's
    assert found.dtype == wanted.dtype
    nan = np.isnan(wide)
    np.testing.assert_array_equal(np.isnan(found), nan)
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):  # the error of a logarithm grows with the exponent
        grown = np.nan_to_num(abs(w * np.log(z)), nan=0, posinf=0) + 1
    bound = 4 * info.eps * grown * abs(wide) + info.tiny
    inside = ~nan & (abs(wide) < info.max / 2)
    assert (abs(found - wide) <= bound)[inside].all() and inside.sum() > 1000
