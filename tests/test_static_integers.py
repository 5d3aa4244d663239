"""What decides a program is read in one way: integers, and nothing else."""

import warnings

import pytest

import minijax
import minijax.image
import minijax.ops
import minijax.scipy.fft
import minijax.scipy.integrate
import minijax.scipy.linalg
import minijax.scipy.ndimage
import minijax.scipy.signal
import minijax.scipy.special
import minijax.scipy.stats
from minijax.arrays.numerics import operator_index
from minijax.errors import ConcretizationTypeError
from tests.static_integers import CALLS, KINDS, operands, outcome

# Where a float is rounded down, as in NumPy, or any number is a value like another.
NUMBERS = "fold_in key( PRNGKey( isin pad( eye( tri( tril triu delete(M arange".split()
NUMBERS += ["bartlett", "blackman", "hamming", "hanning", "kaiser", "freq(", "roll("]
NUMBERS += ["ddof", "lax.scan(", "broadcast_to_rank", "axis_size"]


@pytest.fixture(scope="module")
def known():
    return operands(minijax)


AS_IN_JAX = "broadcast_to_rank", "axis_size"  # where an array is refused by both
SOME = [call for call in CALLS[::4] if not any(word in call for word in AS_IN_JAX)]


@pytest.mark.parametrize("call", SOME)
def test_integers_of_all_kinds_are_one(call, known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = outcome(minijax, call, "int", known)
        for kind in ("numpy", "zero_d", "array"):
            found = outcome(minijax, call, kind, known)
            assert isinstance(wanted, Exception) or found == wanted, kind
        if not any(word in call for word in NUMBERS):
            for kind in ("float", "numpy_float"):
                error = outcome(minijax, call, kind, known)
                assert isinstance(error, (TypeError, ValueError)), (kind, error)


@pytest.mark.parametrize("x", [1.0, "1", None, [1], minijax.numpy.ones(1, int)])
def test_what_is_no_integer_is_named(x):
    with pytest.raises(TypeError, match="Expected an integer as k of f, got"):
        operator_index(x, "k of f")


def test_a_tracer_is_told_the_way_out():
    with pytest.raises(ConcretizationTypeError, match="as k of f.*static_argnums.* n"):
        minijax.jit(lambda n: operator_index(n, "k of f"))(1)
    with pytest.raises(ConcretizationTypeError, match="traced. Pass size."):
        minijax.jit(lambda n: operator_index(n, "k of f", "Pass size."))(1)


def test_a_tracer_with_a_number_is_an_integer():
    def f(x):
        return x * operator_index(minijax.numpy.round(x).astype(int), "n")

    assert minijax.grad(f)(2.0) == 2.0


def test_kinds_are_all_told():
    assert KINDS["tracer"] is None and len(KINDS) == 10
