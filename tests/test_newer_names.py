"""Names that came late: arrays alive, upper halves of products, older names."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, nn

KINDS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32]


@pytest.mark.parametrize("kind", KINDS)
def test_upper_half_of_products(kind):
    ends, rng = np.iinfo(kind), np.random.default_rng(0)
    edges = [(a, b) for a in (ends.min, ends.max, 0, 1) for b in (ends.min, ends.max)]
    x, y = rng.integers(ends.min, ends.max, (2, 200), dtype=kind, endpoint=True)
    x, y = np.append([x, y], np.array(edges, kind).T, axis=1)
    wanted = (x.astype(object) * y.astype(object) >> 8 * x.itemsize).astype(kind)
    for f in (lax.mulhi, minijax.jit(lax.mulhi), minijax.vmap(lax.mulhi)):
        np.testing.assert_array_equal(f(x, y), wanted)


def test_upper_half_refuses_floats_and_mixtures():
    with pytest.raises(TypeError, match="mulhi does not accept dtype float32"):
        lax.mulhi(jnp.ones(2), jnp.ones(2))
    with pytest.raises(TypeError, match="same dtypes"):
        lax.mulhi(np.int8([1]), np.int32([1]))


def test_live_arrays_are_those_with_memory():
    before = len(minijax.live_arrays())
    kept = [jnp.arange(4.0) + i for i in range(3)]
    assert len(minijax.live_arrays()) == before + 3
    kept[0].delete()
    assert len(minijax.live_arrays("cpu")) == before + 2
    assert any(x is kept[1] for x in minijax.live_arrays())
    with pytest.raises(RuntimeError):
        minijax.live_arrays("abacus")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("host_id", "process_index"),
        ("host_count", "process_count"),
        ("host_ids", "process_indices"),
    ],
)
def test_older_names_warn(old, new):
    with pytest.warns(UserWarning, match=f"renamed to minijax.{new}"):
        assert getattr(minijax, old)() == getattr(minijax, new)()


def test_sharding_of_one_device():
    [device, *_] = minijax.devices()
    found = minijax.sharding.make_single_device_sharding(device)
    assert found == minijax.sharding.SingleDeviceSharding(device)


def test_scaled_products_are_products_of_scaled_blocks():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 8)), rng.normal(size=(2, 5, 8))
    a, b = rng.uniform(1, 2, (2, 3, 2)), rng.uniform(1, 2, (2, 5, 2))
    wanted = np.einsum("bmk,bnk->bmn", x * a.repeat(4, -1), y * b.repeat(4, -1))
    found = minijax.jit(nn.scaled_matmul)(x, y, a, b)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    small = nn.scaled_matmul(x, y, a, b, preferred_element_type=jnp.float16)
    assert small.dtype == np.float16


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((3, 8), (2, 5, 8), (2, 3, 2), (2, 5, 2)), "to be 3-dimensional"),
        (((2, 3, 8), (2, 5, 6), (2, 3, 2), (2, 5, 2)), "inputs to have matching"),
        (((2, 3, 8), (2, 5, 8), (2, 3, 2), (2, 5, 4)), "scales to have matching"),
        (((2, 3, 8), (2, 5, 8), (2, 4, 2), (2, 5, 2)), "match non-contract"),
        (((2, 3, 8), (2, 5, 8), (2, 3, 3), (2, 5, 3)), "a multiple of"),
    ],
)
def test_scales_that_do_not_fit(shapes, words):
    with pytest.raises(ValueError, match=words):
        nn.scaled_matmul(*map(jnp.ones, shapes))


def test_bits_have_the_transformations():
    keys = np.arange(8, dtype=np.uint32).reshape(2, 4)
    after, words = minijax.vmap(lambda key: lax.rng_bit_generator(key, (3,)))(keys)
    drawn = minijax.jit(lax.rng_bit_generator, static_argnums=1)(keys[0], (2, 3))
    np.testing.assert_array_equal(after, [drawn[0], keys[1]])
    np.testing.assert_array_equal(words, drawn[1])
    with pytest.raises(TypeError, match="uint32.4. or uint64.2."):
        lax.rng_bit_generator(np.arange(3, dtype=np.uint32), (3,))
    with pytest.raises(TypeError, match="unsupported dtype int32"):
        lax.rng_bit_generator(keys[0], (3,), np.int32)


def test_numbers_without_a_key():
    draw = minijax.jit(lambda low: lax.rng_uniform(low, 2.0, (1000,)))
    first, second = draw(1.0), draw(1.0)
    assert first.dtype == np.float32 and (first != second).any()
    assert first.min() >= 1 and first.max() < 2 and abs(first.mean() - 1.5) < 0.1
    assert {*lax.rng_uniform(0, 3, (100,)).tolist()} == {0, 1, 2}
    with pytest.raises(ValueError, match="identical dtypes, got float32 and int32"):
        lax.rng_uniform(0.0, 1, (3,))
    with pytest.raises(ValueError, match="must be scalars"):
        lax.rng_uniform(0.0, jnp.ones(2), (3,))
    with pytest.raises(TypeError, match="does not accept dtype bool"):
        lax.rng_uniform(False, True, (3,))


def test_a_type_may_be_the_result_of_a_function_of_types():
    def shapes(x):
        return {"x": x, "of": minijax.ShapeDtypeStruct((2, 3), np.int8)}

    found = minijax.eval_shape(shapes, jnp.ones(4))
    assert found["of"].shape == (2, 3) and found["of"].dtype == np.int8
    again = minijax.eval_shape(lambda: minijax.eval_shape(jnp.sin, 1.0))
    assert again == minijax.eval_shape(jnp.sin, 1.0)
