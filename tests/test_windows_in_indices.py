"""`ds`: windows whose start a program computes; cotangents that go into references."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ds


def test_a_window_moves_with_a_computed_start():
    x = jnp.arange(12.0).reshape(3, 4)
    moved = minijax.jit(lambda i: x[ds(i, 2), ds(i + 1, 2)])
    for i in range(2):
        np.testing.assert_array_equal(moved(i), np.asarray(x)[i : i + 2, i + 1 : i + 3])
    assert moved._cache_size() == 1


def test_what_is_written_to_a_window_stays_inside():
    x = jnp.zeros(6)
    found = minijax.jit(lambda i: x.at[ds(i, 2, 3)].set(jnp.array([1.0, 2.0])))(1)
    assert found.tolist() == [0, 1, 0, 0, 2, 0]


@pytest.mark.parametrize("args", [(0, 2, 0), (0, 2, -1), (0, 2, 1.5)])
def test_the_stride_is_a_positive_int(args):
    with pytest.raises(ValueError, match="the stride is a positive int"):
        ds(*args)


def test_the_length_is_known():
    with pytest.raises(TypeError, match="the size of ds"):
        minijax.jit(lambda n: jnp.arange(4.0)[ds(0, n)])(2)


def test_cotangents_are_added_to_references_in_a_program():
    total, ad = minijax.new_ref(jnp.zeros(2)), minijax.ad

    @minijax.jit
    def add(total, w, x):
        pull = minijax.vjp(lambda w, x: (w * w * x).sum(), w, x)[1]
        return pull.with_refs(total, ad.DontWant())(1.0)

    for x in (1.0, 2.0):
        assert add(total, jnp.array([3.0, 4.0]), x) == (ad.GradRef(), ad.DidntWant())
    assert total[...].tolist() == [18, 24]


def test_a_program_compiled_for_references_says_what_is_wrong():
    ref = minijax.new_ref(jnp.ones(3))
    compiled = minijax.jit(lambda a, b: None).lower(ref, minijax.new_ref(1.0)).compile()
    with pytest.raises(ValueError, match="only one reference"):
        compiled(ref, ref)
    with pytest.raises(TypeError, match=r"float32\[3\]"):
        compiled(minijax.new_ref(jnp.ones(4)), minijax.new_ref(1.0))
