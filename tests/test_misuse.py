"""Signatures misused, and a wrong value in the place of every argument."""

import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from tests import misuse
from tests.commands import LONG


def test_python_refuses_by_the_name_of_the_function_and_the_argument():
    found, met = misuse.binding_faults()
    assert not found and met > 3000


def test_a_wrong_value_in_each_place():
    found, met = misuse.faults(every=1 if LONG else 2)
    assert not found and met > 4000


def test_a_sentence_without_the_function_is_found():
    def renamed(*args, **kwargs):
        return (lambda x: x)(*args, **kwargs)

    renamed.__wrapped__ = lambda x: x
    calls = list(misuse.bindings(renamed))
    assert all(misuse.binding_fault("m.other", renamed, call) for call in calls)
    assert [title for title, *_ in calls] == ["unknown", "too many", "missing", "twice"]


V = jnp.arange(4)
linalg = minijax.scipy.linalg
COUNTS = {
    "array_split": (lambda: jnp.array_split(V, -2), ValueError),
    "split": (lambda: jnp.split(V, 0), ValueError),
    "diag_indices": (lambda: jnp.diag_indices(2, -2), ValueError),
    "repeat": (lambda: jnp.repeat(V, 2, total_repeat_length=-3), TypeError),
    "dct": (lambda: minijax.scipy.fft.dct(V, n=-3), ValueError),
    "scan": (lambda: lax.scan(lambda c, _: (c, c), 0, None, -3), ValueError),
    "buckets": (lambda: minijax.ops.segment_sum(V, V, 9, bucket_size=-1), ValueError),
    "helmert": (lambda: linalg.helmert(-2), ValueError),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_negative_count(name):
    call, kind = COUNTS[name]
    for run in (call, lambda: minijax.eval_shape(call)):
        with pytest.raises(kind, match=r"positive|negative|buckets"):
            run()


HUGE = {
    "array_split": lambda n: jnp.array_split(V, n),
    "diag_indices": lambda n: jnp.diag_indices(2, n),
    "tril_indices": lambda n: jnp.tril_indices(n),
    "triu_indices": lambda n: jnp.triu_indices(n),
    "polyint": lambda n: jnp.polyint(V, n),
    **{name: getattr(linalg, name) for name in
       "hilbert invhilbert pascal invpascal hadamard helmert dft".split()},
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("n", [2**40, 2**62, 2**63])
def test_a_count_for_which_there_is_no_room(name, n):
    for run in (HUGE[name], lambda n: minijax.eval_shape(lambda: HUGE[name](n))):
        with pytest.raises(minijax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
            run(n)


def test_a_diagonal_far_away():
    assert jnp.triu_indices(3, k=2**70)[0].size == jnp.tril_indices(3, -(2**70))[0].size
    assert jnp.tril_indices(3, 2**70)[0].size == 9


BEYOND = {
    "asarray": lambda n: jnp.asarray(n),
    "at": lambda n: V.at[0].set(n),
    "stack": lambda n: jnp.stack([n, 1]),
    "pad": lambda n: jnp.pad(V, 1, constant_values=n),
    "isin": lambda n: jnp.isin(V, n),
    "tile": lambda n: jnp.tile(n, 2),
    "insert": lambda n: jnp.insert(V, 1, n),
    "dynamic_index_in_dim": lambda n: lax.dynamic_index_in_dim(V, n),
    "dynamic_slice": lambda n: lax.dynamic_slice(V, (n,), (1,)),
    "add": lambda n: V + n,
}


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("n", [2**31, 2**40, -(2**31) - 1, 10**30])
def test_a_number_of_python_beyond_32_bits_does_not_wrap(name, n):
    for run in (BEYOND[name], lambda n: minijax.jit(lambda: BEYOND[name](n))()):
        with pytest.raises(OverflowError):
            run(n)
