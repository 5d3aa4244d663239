"""Names that came late: arrays alive, upper halves of products, older names."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax

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
