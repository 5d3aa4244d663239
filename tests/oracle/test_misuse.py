"""Misused calls beside JAX: an answer for an answer, an error for an error.

JAX's classes are partly those of whatever line met the value first (an AttributeError,
an AssertionError); ours are the classes of a sentence, or JAX's.
"""

import importlib
import inspect
import resource

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests import bad_values, misuse, public_names, static_integers  # noqa: E402
from tests.commands import LONG  # noqa: E402

SPACES = "image ops scipy.fft scipy.integrate scipy.linalg scipy.ndimage scipy.signal"
for root in ("jax", "minijax"):
    for space in f"{SPACES} scipy.special scipy.stats".split():
        importlib.import_module(f"{root}.{space}")

SENTENCES = TypeError, ValueError, OverflowError, NotImplementedError
# Numbers that JAX counts to in Python, or writes into the types of results.
ENDLESS = """
    broadcast_to_rank( diff( array_split( diag_indices( polyder polyint tril_indices(
    triu_indices( hadamard pascal helmert hilbert bernoulli( dft( total_repeat hamming
    split orthogonal matrix_power lu_pivots convolution_matrix comb( factorial unstack
    multigammaln bessel_jn integer_pow
""".split()
# What ours answer and JAX refuses: sizes beyond all addresses, of arrays that nothing
# computes; integers that are read when the program runs; no dtype for the default one.
LAXER = """
    bincount diagonal insert argwhere resize tile tri tril_indices setdiff1d trace
    fft.fft hfft lax.broadcast broadcasted_iota collapse iota lax.pad reduce_window
    fori_loop gamma jit M.repeat
""".split()
# What ours refuse and JAX answers: floats and None for integers; numbers that do not
# fit into 32 bits; negative sizes, which JAX writes into the type of the result.
STRICTER = """
    array_split diag( dsplit linspace jnp.repeat rot90 std tile broadcasted_iota cumsum
    dynamic_index_in_dim dynamic_slice_in_dim initializers normal bits choice PRNGKey
    gamma polygamma invhilbert helmert welch dct sem segment_sum
""".split()


def among(text, words):
    return any(word in text for word in words)


def comparable(value, text):
    return not ("*" in value and among(text, ENDLESS))


@pytest.fixture
def roomy():
    """No call takes all the memory that there is."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (20 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_wrong_value_is_refused_where_jax_refuses_it(roomy):
    both = [static_integers.operands(j) for j in (minijax, jax)]
    wrong, met = [], 0
    for value, text in misuse.calls(every=3 if LONG else 12):
        if not comparable(value, text):
            continue
        met += 1
        ours = misuse.outcome(minijax, text, value, both[0])
        theirs = misuse.outcome(jax, text, value, both[1])
        if (ours is None) != (theirs is None):
            known = among(text, LAXER if ours is None else STRICTER)
        else:
            names = {kind.__name__ for kind in type(ours).__mro__}
            known = isinstance(ours, SENTENCES) or type(theirs).__name__ in names
        if not known:
            wrong.append((text, value, ours, theirs))
    assert not wrong and met > 400


def test_signatures_are_refused_by_the_same_class():
    """Where both have the parameters."""
    wrong, met = [], 0
    for name, function in bad_values.functions():
        path, _, last = name.rpartition(".")
        theirs = getattr(public_names.found_in("jax", path), last, None)
        if not inspect.isfunction(function) or not callable(theirs):
            continue
        if public_names.parameters(function) != public_names.parameters(theirs):
            continue
        for title, args, named, _ in misuse.bindings(function):
            met += 1
            with pytest.raises(Exception) as raised:
                theirs(*args, **named)
            if not isinstance(raised.value, TypeError):
                wrong.append((name, title, raised.value))
    assert not wrong and met > 2000
