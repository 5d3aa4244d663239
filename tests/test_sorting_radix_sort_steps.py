"""Sorts in compiled programs: every backend has the same bits as the evaluation."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, enable_x64, jit, lax, make_jaxpr, vmap
from minijax.jitting.compilation import compile_cached
from minijax.sorting.radix_sort import Sort, pad_to_alignment, sort_workspace_bytes
from minijax.sorting.sort import sort_key_words
from tests.backends_here import HERE
from tests.sorting_cases import DTYPES, SIZES, numbers, order, same_bits


def agree(f, *args, names=("cpu",)):
    closed, wanted = make_jaxpr(f)(*args), f(*args)
    for name in names:
        for x, y in zip(compile_cached(closed, name)(*args), wanted, strict=True):
            assert same_bits(x, y), name


@pytest.mark.parametrize("name", DTYPES)
def test_all_sizes(name):
    for size in SIZES:
        x = jnp.asarray(numbers(name, (size,)))
        agree(lambda x: lax.sort((x, lax.iota("uint8", len(x)))), x)


@pytest.mark.parametrize("name", HERE)
def test_backends(name):
    x, y = (jnp.asarray(numbers("float32", (3, 30), seed)) for seed in (1, 2))
    agree(lambda x, y: lax.sort((x, y, -x), 0, num_keys=2), x, y, names=[name])
    agree(lambda x: lax.sort((x.T[::-1], x.T), 1), x, names=[name])


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_wide_elements(name):
    with enable_x64():
        x = np.random.default_rng(3).normal(size=(2, 70)) * 1e9
        x = jnp.asarray(np.abs(x) if name == "uint64" else x).astype(name)
        agree(lambda x: lax.sort((x, x[::-1])), x)
    assert np.array_equal(jit(lax.sort)(x), np.sort(x))  # without the switch


def test_large_rows_and_small_digits():
    rng = np.random.default_rng(4)
    for top in (3, 300, 70_000, 2**31 - 1):
        x = rng.integers(0, top, 5000).astype("int32")
        found = jit(lambda x: lax.sort((x, lax.iota("int32", len(x)))))(x)[1]
        assert np.array_equal(found, np.argsort(x, kind="stable"))


def test_many_short_rows():
    x = numbers("float32", (500, 9))
    wanted = np.array([row[order(row)] for row in x])
    assert same_bits(jit(lax.sort)(jnp.asarray(x)), wanted)


def test_one_kernel_and_one_step():
    closed = make_jaxpr(lambda x: lax.sort((x * x, x))[1])(jnp.zeros(100))
    program = compile_cached(closed, "cpu")
    steps = program.lowered.steps
    assert [type(step).__name__ for step in steps] == ["Launch", "Sort"]
    assert not program.host.steps and program.entry is not None
    assert str(steps[1]).count(" = sort ") == 1
    assert steps[1].workspace == 4 * pad_to_alignment(100) + sort_workspace_bytes(
        100, 4
    )
    assert program.cost_analysis()["flops"] >= 400


def test_in_loops_and_branches():
    def f(x):
        def step(carry, row):
            carry = lax.cond(row[0] > 0, lax.sort, lambda x: x, carry + row)
            return carry, lax.sort((row, carry))[1]

        return lax.scan(step, x[0], x)

    x = jnp.asarray(np.random.default_rng(5).normal(size=(6, 40)), "float32")
    for ours, wanted in zip(jit(f)(x), f(x)):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(f))(x[None])[1][0], f(x)[1], rtol=1e-6)


def test_constants_and_repeated_operands():
    x = jnp.asarray(numbers("int32", (50,)))
    agree(lambda x: lax.sort((x, x, jnp.full(50, 7), jnp.broadcast_to(x[0], 50))), x)
    agree(lambda: lax.sort((np.arange(30)[::-1].astype("int32"), jnp.ones(30))))


def test_profile_has_the_step():
    closed = make_jaxpr(lax.sort)(jnp.zeros(100))
    program = compile_cached(closed, "cpu")
    profile = program.profile(jnp.arange(100.0)[::-1])
    assert any(isinstance(row[0], Sort) for row in profile.rows.values())


@pytest.mark.parametrize("name", DTYPES)
def test_words_are_in_the_order_of_numbers(name):
    x = numbers(name, (200,))
    words = [np.asarray(word) for word in sort_key_words(jnp.asarray(x))]
    assert all(word.dtype.kind == "u" for word in words)
    assert np.array_equal(np.lexsort(words[::-1]), order(x))
    struct = ShapeDtypeStruct(x.shape, jnp.asarray(x).dtype)
    assert len(make_jaxpr(sort_key_words)(struct).out_avals) == len(words)
