"""A GPU as a device: arrays live there, operations and programs run there."""

import gc
import pickle

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.devices import host_device
from minijax.experimental import io_callback
from minijax_book import emulator

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
HERE = host_device()


@pytest.fixture
def counts(machine):
    return machine[1].counts


@pytest.fixture
def x(gpu):
    return minijax.device_put(jnp.arange(6.0).reshape(2, 3), gpu)


def test_numbers_come_and_go(x, gpu):
    assert repr(x) == repr(jnp.arange(6.0).reshape(2, 3))
    assert (float(x[0, 1]), int(x[1, 0]), bool(x[0, 0])) == (1.0, 3, False)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x.device is gpu
    assert minijax.device_put(x, HERE).device is HERE
    np.testing.assert_array_equal(minijax.device_get(x), np.arange(6.0).reshape(2, 3))
    assert pickle.loads(pickle.dumps(x)).device is not gpu
    assert not np.asarray(x).flags.writeable


@pytest.mark.parametrize(
    "dtype", "bool int8 uint16 int32 float16 bfloat16 complex64".split()
)
def test_every_kind_of_number_lives_there(dtype, gpu):
    numbers = jnp.array([[0, 1, 2], [3, 4, 5]], dtype)
    far = minijax.device_put(numbers, gpu)
    assert far.dtype == numbers.dtype and (np.asarray(far) == np.asarray(numbers)).all()
    assert (np.asarray(far | far if dtype == "bool" else far + far) == np.asarray(
        numbers | numbers if dtype == "bool" else numbers + numbers)).all()  # fmt: skip


def test_empty_arrays_and_no_bytes(gpu):
    none = minijax.device_put(jnp.zeros((0, 3)), gpu)
    assert (none + 1).shape == (0, 3) and none.sum(axis=0).tolist() == [0, 0, 0]
    float0 = minijax.device_put(np.zeros(3, minijax.dtypes.float0), gpu)
    assert np.asarray(float0).shape == (3,)


def test_operations_are_launches_and_nothing_is_copied(x, counts):
    y = (x * x).block_until_ready()
    before = dict(counts)
    for _ in range(3):
        y = jnp.tanh(y) * y
    minijax.block_until_ready(y)
    assert counts["launches"] - before["launches"] == 6
    assert (counts["in"], counts["out"]) == (before["in"], before["out"])


def test_results_come_late_and_a_wait_waits(x, gpu):
    y = x * 3
    assert not y.is_ready()
    assert y.block_until_ready() is y and y.is_ready()
    y = x * 4
    assert float(y[1, 2]) == 20 and gpu.card.is_done


def test_operands_meet_there(x, gpu):
    for result in (x + jnp.ones((2, 3)), np.ones((2, 3), np.float32) * x, 1 + x):
        assert result.device is gpu
    with pytest.raises(ValueError, match="platform GPU.*platform CPU"):
        lax.add(x, minijax.device_put(jnp.ones((2, 3)), HERE))


def test_what_has_no_kernel_is_done_by_the_host(x, gpu):
    key = minijax.random.key(0)
    results = [
        jnp.sort(x[:, ::-1]), jnp.linalg.inv(x[:, 1:]), jnp.linalg.norm(x),
        lax.top_k(x, 2)[0], jnp.median(x), minijax.random.permutation(key, x),
    ]  # fmt: skip
    assert {result.device for result in results} == {gpu}
    near = jnp.asarray(np.asarray(x))
    np.testing.assert_allclose(results[1], jnp.linalg.inv(near[:, 1:]), rtol=1e-5)
    assert results[0].tolist() == near.tolist()


@pytest.mark.parametrize("way", [lambda f: f, minijax.jit], ids=["eager", "jit"])
def test_callbacks_run_on_the_host(way, x, gpu):
    seen = []

    def double(numbers):
        seen.append((numbers.device, jnp.ones(1).device))
        return numbers * 2

    @way
    def f(x):
        minijax.debug.callback(double, x)
        return minijax.pure_callback(double, x, x) + io_callback(double, x, x)

    with minijax.default_device(gpu):
        result = f(x)
    assert result.device is gpu and seen == [(HERE, HERE)] * 3
    np.testing.assert_array_equal(result, np.asarray(x) * 4)


def test_a_buffer_answers_no_question_of_numpy(x):
    with pytest.raises(TypeError, match="lies on a card"):
        np.add(x._buffer, 1)
    with pytest.raises(TypeError, match="was given a ndarray for a buffer"):
        x.device.seal(np.zeros(3))


def test_programs_of_operations_are_kept_until_caches_are_cleared(x, gpu):
    minijax.block_until_ready(x * 5)
    kept = len(gpu.programs)
    assert kept and minijax.block_until_ready(x * 6) is not None
    assert len(gpu.programs) == kept
    minijax.clear_caches()
    assert not gpu.programs
    np.testing.assert_array_equal(x * 7, np.asarray(x) * 7)


def outside(x, value):
    """What stands for an element that an array of two rows has not."""
    return x.at[jnp.array([7])].get(mode="fill", fill_value=value)


def test_parameters_of_operations_are_told_apart_by_their_bits(x):
    for value in (0.0, -0.0, 0, np.float32(-0.0), 1.0, 1):
        found = np.asarray(outside(x, value))
        assert found.tobytes() == np.full((1, 3), value, np.float32).tobytes()


def test_a_nan_is_no_new_operation_each_time(x, gpu):
    assert np.isnan(np.asarray(outside(x, float("nan")))).all()
    kept = len(gpu.programs)
    for _ in range(3):
        outside(x, float("nan")).block_until_ready()
    assert len(gpu.programs) == kept


def test_many_eager_loops_leave_nothing_behind(x, gpu):
    def loops(count):
        for n in range(count):
            lax.scan(lambda c, a: (c * n + a.sum(), c), jnp.float32(1), x)  # noqa: B023
        gpu.card.wait()
        gc.collect()
        return len(gc.get_objects())

    before = loops(3)
    assert loops(50) - before < 250
