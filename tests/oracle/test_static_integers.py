"""An integer that decides a program is read as in JAX, in more than 300 calls.

Where JAX keeps a program for each static argument it refuses arrays, and takes any
number that is equal to one of before; ours is the same everywhere.
"""

import importlib
import warnings

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from minijax import errors  # noqa: E402
from tests.static_integers import CALLS, KINDS, operands, outcome  # noqa: E402

SPACES = "image ops scipy.fft scipy.integrate scipy.linalg scipy.ndimage scipy.signal"
for root in ("jax", "minijax"):
    for space in f"{SPACES} scipy.special scipy.stats".split():
        importlib.import_module(f"{root}.{space}")

TRACED = errors.ConcretizationTypeError, errors.TracerIntegerConversionError
# The shapes of NumPy's functions and boxes: JAX raises a TypeError as well.
OF_SHAPES = """eye( identity( tri( empty( full( ones( zeros reshape resize choice(K, V
    broadcast_to random."""
LAXER = {  # what ours take and JAX refuses
    "numpy_bool": ["jnp.pad(V", "jnp.tri", "jnp.delete", "jnp.eye"],
    "row": """linspace size( dct count_nonzero cross gradient median nan percentile
        quantile resize trapezoid norm( softmax standardize split(K""".split(),
    "tracer": ["jnp.tril(M", "jnp.triu(M", "jnp.insert"],
}
STRICTER = {("jax.scipy.signal.fftconvolve(F, F, axes=n)", "bool")}
TOLD_OTHERWISE = ("fftconvolve", "glorot_normal(in_axis", "jnp.insert(M, n")


@pytest.fixture(scope="module")
def both():
    jax.clear_caches()
    return operands(minijax), operands(jax)


def is_error(x):
    return isinstance(x, Exception)


def names_of(error):
    """Return the names of the classes of an error, which both packages have."""
    return {kind.__name__ for kind in type(error).__mro__ if is_error(error)}


@pytest.mark.parametrize("call", CALLS)
def test_reading(call, both):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            ours = outcome(minijax, call, kind, both[0])
            theirs = outcome(jax, call, kind, both[1])
            check(call, kind, ours, theirs)


def check(call, kind, ours, theirs):
    known = any(word in call for word in LAXER.get(kind, ()))
    if is_error(theirs) and type(theirs).__name__ in names_of(ours):
        return
    if kind in ("float", "numpy_float", "numpy_bool", "row"):
        if is_error(theirs):
            assert known or isinstance(ours, (TypeError, ValueError)), (kind, ours)
        else:
            assert ours == theirs or isinstance(ours, TypeError), (kind, ours)
    elif kind == "tracer" and is_error(theirs):
        shape = any(word in call for word in OF_SHAPES.split())
        accepted = TypeError if shape else TRACED
        if not known and not any(word in call for word in TOLD_OTHERWISE):
            assert isinstance(ours, accepted), (kind, ours)
    elif not is_error(theirs) and (call, kind) not in STRICTER:
        told = any(word in call for word in TOLD_OTHERWISE)
        assert ours == theirs or told, (kind, ours, theirs)
