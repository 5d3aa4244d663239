"""Devices, where arrays are on them, and moving arrays there and back."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays import devices as placement
from minijax.arrays.array import ArrayImpl, as_array_impl, asbuffer
from minijax.arrays.devices import Device, default_placement, platforms
from minijax.arrays.interchange import placement_of
from minijax.arrays.transfer import block_until_ready, device_get_leaf, device_put_leaf
from minijax.core import Tracer
from minijax.jitting.arguments import delete_array
from minijax.sharding import Sharding, SingleDeviceSharding

FIRST, SECOND = minijax.devices()
AT_HOME = default_placement().device  # the first, unless a switch of conftest says more


@pytest.fixture
def numbers():
    return jnp.arange(3.0)


def where(x):
    return x.device.id, x.committed


def test_two_cpus():
    assert repr(SECOND) == "CpuDevice(id=1)" and str(SECOND) == "cpu:1"
    assert (SECOND.platform, SECOND.id, SECOND.process_index) == ("cpu", 1, 0)
    assert (SECOND.device_kind, SECOND.local_hardware_id) == ("cpu", 1)
    assert SECOND.memory_stats() is None and isinstance(SECOND, minijax.Device)
    assert minijax.default_backend() == "cpu"
    assert minijax.device_count() == minijax.local_device_count("cpu") == 2
    assert minijax.local_devices(0) == minijax.devices("cpu") == [FIRST, SECOND]
    assert minijax.local_devices(host_id=0) == minijax.devices("")
    assert minijax.process_index() == 0 and minijax.process_indices() == [0]
    assert minijax.process_count() == 1


def test_devices_are_copied_and_pickled_as_themselves():
    for device in minijax.devices():
        assert copy.deepcopy(device) is pickle.loads(pickle.dumps(device)) is device
    sharding = SECOND.committed.sharding
    assert pickle.loads(pickle.dumps(sharding)) == sharding


def test_unknown_places():
    with pytest.raises(RuntimeError, match="Unknown backend: 'tpu'.*present are: cpu"):
        minijax.devices("tpu")
    with pytest.raises(RuntimeError, match="Unknown backend: 3 requested"):
        minijax.device_count(3)
    with pytest.raises(ValueError, match=r"there are \[0\]"):
        minijax.local_devices(3)
    with pytest.raises(IndexError):
        minijax.devices()[2]


@pytest.mark.of_the_cpu("names a card as a platform that is not here")
@pytest.mark.parametrize("switch", ["jax_platforms", "jax_platform_name"])
def test_platforms_by_switch(switch, monkeypatch):
    monkeypatch.setitem(platforms, "toy", [Device("toy", 0, np)])
    for value in ("cpu", "cpu,cuda", "cuda,cpu", "cuda, cpu", "", None):
        with minijax.config.override(switch, value):
            assert minijax.default_backend() == "cpu"
    with minijax.config.override(switch, "toy"):
        assert minijax.devices() == platforms["toy"]
    with pytest.raises(RuntimeError, match="initialize backend 'tpu'.*here: cpu"):
        minijax.config.update(switch, "tpu")
    for value in ("cuda", "cuda,cuda", "cpu,tpu", "tpu,cpu", "cpu,", "CPU"):
        with pytest.raises(RuntimeError, match="initialize backend '(cuda|tpu|CPU|)'"):
            minijax.config.update(switch, value)
    with pytest.raises(ValueError, match="string or None, got 3"):
        minijax.config.update(switch, 3)


def test_arrays_know_where_they_are(numbers):
    moved = device_put_leaf(numbers, SECOND)
    assert moved.device is SECOND and moved.devices() == {SECOND} and moved.committed
    assert moved.sharding == SingleDeviceSharding(SECOND) != numbers.sharding or (
        AT_HOME is SECOND
    )
    assert repr(moved.sharding) == (
        "SingleDeviceSharding(device=CpuDevice(id=1), memory_kind=device)"
    )
    assert not numbers.committed and numbers.device is AT_HOME
    assert moved.is_fully_addressable and moved.is_fully_replicated
    assert moved.block_until_ready() is moved and moved.is_ready()
    assert moved.copy_to_host_async() is None and moved.platform() == "cpu"
    assert moved.on_device_size_in_bytes() == 12
    [shard] = moved.addressable_shards
    assert repr(shard) == (
        "Shard(device=CpuDevice(id=1), index=(slice(None, None, None),), replica_id=0, "
        "data=[0. 1. 2.])"
    )
    assert moved.addressable_data(0).device is SECOND
    with pytest.raises(IndexError):
        moved.addressable_data(1)


def test_shardings():
    sharding = SingleDeviceSharding(SECOND, memory_kind="device")
    assert isinstance(sharding, Sharding) and sharding.memory_kind == "device"
    assert sharding == sharding.with_memory_kind("device") == SECOND.committed.sharding
    assert len({sharding, SECOND.committed.sharding, FIRST.committed.sharding}) == 2
    assert sharding.device_set == sharding.addressable_devices == {SECOND}
    assert sharding.num_devices == 1 and sharding.is_fully_addressable
    assert sharding.shard_shape((2, 3)) == (2, 3)
    whole = {SECOND: (slice(None), slice(None))}
    assert sharding.addressable_devices_indices_map((2, 3)) == whole
    assert sharding.is_equivalent_to(SingleDeviceSharding(SECOND), 2)
    assert not sharding.is_equivalent_to(SingleDeviceSharding(FIRST), 2)
    mesh = minijax.sharding.Mesh([SECOND], "x")
    alone = minijax.NamedSharding(mesh, minijax.P("x"))
    with minijax.set_mesh(mesh):
        part = minijax.make_array_from_process_local_data(minijax.P("x"), np.ones(2))
    assert part.sharding == alone
    with pytest.raises(ValueError, match=r"minijax.devices\(\), not 'cpu'"):
        SingleDeviceSharding("cpu")
    with pytest.raises(ValueError, match="memory addressable by device cpu.*kind: foo"):
        SingleDeviceSharding(FIRST, memory_kind="foo")
    assert repr(FIRST.uncommitted) == "uncommitted cpu:0"


def test_put_and_get(numbers):
    array = device_put_leaf(np.ones(3))
    assert isinstance(array, ArrayImpl) and array.dtype == np.float32
    assert device_put_leaf(array) is array and not array.committed
    here = device_put_leaf(array, array.device)
    assert here is not array and here.committed and here._buffer is array._buffer
    assert device_put_leaf(array, array.device, copy=True)._buffer is not array._buffer
    assert device_put_leaf(array, copy=True)._buffer is not array._buffer
    assert device_put_leaf(2.0).weak_type
    got = device_get_leaf(device_put_leaf(numbers, SECOND))
    assert isinstance(got, np.ndarray) and not got.flags.writeable
    assert device_get_leaf("text") == "text" and device_get_leaf(1.5) == 1.5
    assert block_until_ready(array) is array and block_until_ready(3) == 3


def test_put_refuses(numbers):
    for bad in ("cpu", 0, "cpu:1", Device, np.ones(3)):
        with pytest.raises(ValueError, match="only accepts `None`, `jax.sharding.Shar"):
            device_put_leaf(1.0, bad)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        device_put_leaf("text")
    tracer = Tracer(None)
    assert device_put_leaf(tracer) is tracer
    delete_array(numbers)
    for device in (None, FIRST, SECOND):
        with pytest.raises(RuntimeError, match="has been deleted with shape=float32"):
            device_put_leaf(numbers, device)


def test_trees_are_put_on_prefixes(numbers):
    tree = {"x": [numbers, 1.0], "y": numbers}
    put = minijax.device_put(tree, {"x": SECOND, "y": None})
    assert [x.device for x in put["x"]] == [SECOND] * 2 and put["y"] is numbers
    sharding = SingleDeviceSharding(SECOND)
    put = minijax.device_put(tree, sharding, src=FIRST, may_alias=True)
    assert all(where(x) == (1, True) for x in minijax.tree.leaves(put))
    with pytest.raises(ValueError, match="device_put device"):
        minijax.device_put(tree, {"z": SECOND})
    with pytest.raises(ValueError, match="may_alias and donate cannot be True"):
        minijax.device_put(numbers, SECOND, donate=True, may_alias=True)
    assert minijax.copy_to_host_async(tree) is tree


def test_what_is_copied_to_the_host_is_what_has_a_method_for_it():
    class Kept:
        def copy_to_host_async(self):
            asked.append(self)

    asked, kept = [], Kept()
    tree = [object(), 1, kept]
    assert minijax.copy_to_host_async(tree) is tree and asked == [kept]


def test_arrays_that_are_given_up_are_deleted_if_they_move():
    for device in (FIRST, SECOND):
        numbers = device_put_leaf(np.arange(3.0), FIRST)
        put = minijax.device_put(numbers, device, donate=True)
        assert numbers.is_deleted() == (device is SECOND)
        np.testing.assert_array_equal(put, np.arange(3.0))


def test_uncommitted_operands_follow_committed_ones(numbers):
    moved = device_put_leaf(numbers, SECOND)
    for result in (
        moved + 1,
        numbers + moved,
        moved + np.ones(3),
        jnp.zeros_like(moved),
    ):
        assert where(result) == (1, True)
    assert where(lax.add(np.ones(3), 1.0)) == (AT_HOME.id, False)
    here = device_put_leaf(numbers, FIRST)
    assert where(here * numbers) == (0, True)
    np.testing.assert_array_equal(moved + numbers, np.float32([0, 2, 4]))


def test_two_committed_devices_are_an_error(numbers):
    here, there = device_put_leaf(numbers, FIRST), device_put_leaf(numbers, SECOND)
    with pytest.raises(ValueError) as refusal:
        lax.concatenate([1.0 * there, here], 0)
    assert str(refusal.value) == (
        "Received incompatible devices for jitted computation. Got argument args[0] of "
        "concatenate with shape float32[3] and with device ids [1] on platform CPU and "
        "argument args[1] of concatenate with shape float32[3] and with device ids [0] "
        "on platform CPU. Put them on one device, for example by "
        "minijax.device_put(args[1], args[0].device)."
    )
    for mixed in (
        lambda: here + there,
        lambda: jnp.stack([here, there]),
        lambda: minijax.vmap(jnp.multiply)(here, there),
        lambda: minijax.jvp(lambda x: x * x, (here,), (there,)),
        lambda: lax.while_loop(lambda s: s[0][0] < 3, lambda s: s, (here, there)),
        lambda: lax.scan(lambda c, x: (c + x, c), here[0], there),
    ):
        with pytest.raises(ValueError, match="Received incompatible devices"):
            mixed()


def test_the_default_device(numbers):
    here = device_put_leaf(numbers, FIRST)
    with minijax.default_device(SECOND):
        made = jnp.ones(3), numbers + 1, jnp.array([1, 2]), lax.iota("int32", 3)
        assert [where(x) for x in made] == [(1, False)] * 4
        assert where(here + 1) == (0, True)
        assert device_put_leaf(numbers) is jnp.asarray(numbers) is numbers
        assert where(pickle.loads(pickle.dumps(here))) == (1, False)
        assert where(minijax.random.key(0)) == (1, False)
    with minijax.default_device(FIRST):
        assert where(made[0] + 1) == (0, False)
        assert where(jnp.asarray(made[0])) == (1, False)
    with minijax.default_device("cpu"):
        assert where(jnp.ones(3)) == (0, False)


def test_what_is_no_default_device():
    for bad in (3, "cpu:1"):
        with pytest.raises(ValueError, match="must be passed either a Device object"):
            minijax.config.update("jax_default_device", bad)
    with pytest.raises(RuntimeError, match="Unknown backend: 'tpu'"):
        minijax.config.update("jax_default_device", "tpu")


def test_the_default_device_is_that_of_a_thread():
    inside, outside = threading.Event(), threading.Event()
    found = []

    def other():
        with minijax.default_device(SECOND):
            inside.set()
            outside.wait(10)
            found.append(where(jnp.ones(3)))

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with minijax.default_device(FIRST):
        assert where(jnp.ones(3)) == (0, False)
    mine = where(jnp.ones(3))
    outside.set()
    thread.join()
    assert found == [(1, False)] and mine == (AT_HOME.id, False)
    assert where(jnp.ones(3)) == mine and not placement._default.apart


def test_copies_stay_and_pickles_go_to_the_default_device(numbers):
    moved = device_put_leaf(numbers, SECOND)
    for again in (copy.copy(moved), copy.deepcopy(moved), moved.copy(), moved[:2]):
        assert where(again) == (1, True)
    assert where(pickle.loads(pickle.dumps(moved))) == (AT_HOME.id, False)


def test_tracers_are_nowhere():
    def asked(question):
        with pytest.raises(minijax.errors.ConcretizationTypeError, match="nowhere"):
            minijax.jit(lambda x: (question(x), x)[1])(1.0)

    asked(lambda x: x.devices())
    asked(lambda x: x.committed)
    asked(lambda x: x.addressable_shards)
    asked(lambda x: x.is_fully_addressable)


def test_deleted_arrays_know_their_sharding_alone(numbers):
    sharding = numbers.sharding
    delete_array(numbers)
    assert numbers.sharding == sharding and not numbers.committed
    assert numbers.is_fully_addressable
    for ask in (
        lambda x: x.device,
        lambda x: x.devices(),
        lambda x: x.addressable_shards,
        lambda x: x.copy_to_host_async(),
        lambda x: x.is_ready(),
        lambda x: x + 1,
        lambda x: asbuffer(x, SECOND),
    ):
        with pytest.raises(RuntimeError, match="has been deleted with shape=float32"):
            ask(numbers)


class Far(np.ndarray):
    """Numbers of a device that NumPy cannot read; it has to be asked for them."""


class FarModule:
    """An array module whose arrays are `Far`."""

    def __getattr__(self, name):
        function = getattr(np, name)

        def far(*args, **kwargs):
            return np.asarray(function(*args, **kwargs)).view(Far)

        return (
            far if callable(function) and not isinstance(function, type) else function
        )


class FarDevice(Device):
    """A device that counts how often it is asked."""

    def __init__(self):
        super().__init__("far", 0, FarModule())
        self.asked = []

    def put(self, x, dtype=None):
        assert type(x) is not Far
        self.asked.append("put")
        return np.array(x, dtype=dtype).view(Far)

    def fetch(self, buffer):
        assert type(buffer) is Far
        self.asked.append("fetch")
        return buffer.view(np.ndarray)

    def evaluate(self, primitive, compute, buffers, params, avals):
        assert all(type(buffer) is Far for buffer in buffers)
        self.asked.append(str(primitive))
        return super().evaluate(primitive, compute, buffers, params, avals)

    def wait(self, buffer):
        self.asked.append("wait")


@pytest.fixture
def far(monkeypatch):
    monkeypatch.setitem(platforms, "far", [device := FarDevice()])
    return device


def test_a_device_of_another_kind_is_asked_for_everything(far, numbers):
    x = device_put_leaf(numbers, minijax.devices("far")[0])
    y = lax.mul(lax.add(x, 1.0), x)
    assert far.asked == ["put", "put", "add", "mul"]
    for use in (repr, str, np.asarray, "{}".format, pickle.dumps, float_of):
        far.asked.clear()
        use(y)
        assert set(far.asked) & {"fetch"}, use
    far.asked.clear()
    block_until_ready(y)
    assert far.asked == ["wait"] and repr(y) == repr(numbers * (numbers + 1))
    back = device_put_leaf(y, SECOND)
    assert where(back) == (1, True) and type(back._buffer) is np.ndarray
    with pytest.raises(ValueError, match=r"ids \[0\] on platform FAR"):
        lax.add(y, back)


def float_of(x):
    return float(x[1])


def test_programs_run_on_a_device_of_another_kind(far, numbers):
    x = device_put_leaf(numbers, far)
    weights = jnp.ones(3)  # a constant of the program, on another device
    f = minijax.jit(lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x * weights))
    total, rows = f(x)
    assert total.device is rows.device is far and float(total) == 3.0
    np.testing.assert_array_equal(rows, f(numbers)[1])
    assert where(f(numbers)[0]) == (AT_HOME.id, False)


def test_placements_of_operands(numbers):
    moved = device_put_leaf(numbers, SECOND)
    assert placement_of([1, np.ones(3)], "add") is default_placement()
    assert placement_of([numbers, moved, 1], "add") is SECOND.committed
    assert as_array_impl(1.0).placement is default_placement()


ALONE = {
    "first": 'minijax.config.update("jax_num_cpu_devices", 3)',
    "negative": 'minijax.config.update("jax_num_cpu_devices", -5)',
    "late": 'minijax.devices(); minijax.config.update("jax_num_cpu_devices", 3)',
    "after an array": 'jnp.ones(3); minijax.config.update("jax_num_cpu_devices", 3)',
    "the same": 'minijax.devices(); minijax.config.update("jax_num_cpu_devices", -1)',
    "zero": 'minijax.config.update("jax_num_cpu_devices", 0)',
    "text": 'minijax.config.update("jax_num_cpu_devices", "many")',
    "flags": "pass",
    "variable": "pass",
    "own variable": "pass",
    "both": 'minijax.config.update("jax_num_cpu_devices", 2)',
}
OUTSIDE = {
    "flags": {"XLA_FLAGS": "--a=1 --xla_force_host_platform_device_count=4"},
    "variable": {"JAX_NUM_CPU_DEVICES": "4"},
    "own variable": {"JAX_NUM_CPU_DEVICES": "4", "MINIJAX_NUM_CPU_DEVICES": "5"},
    "both": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"},
}
SAID = {
    "first": "3",
    "negative": "1",
    "late": "RuntimeError: jax_num_cpu_devices config should be updated before",
    "after an array": "RuntimeError: jax_num_cpu_devices config should be",
    "the same": "1",
    "zero": "ValueError: jax_num_cpu_devices: There is no computer with 0 devices.",
    "text": "ValueError: jax_num_cpu_devices: new int config value must be None or",
    "flags": "4",
    "variable": "4",
    "own variable": "5",
    "both": "2",
}


@pytest.mark.parametrize("name", ALONE)
def test_the_number_of_devices_is_set_before_the_first_use(name):
    program = f"""
import minijax, minijax.numpy as jnp
try:
    {ALONE[name]}
    print(len(minijax.devices()))
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
    clean = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS",)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
        env=clean | OUTSIDE.get(name, {}), check=True,
    )  # fmt: skip
    assert done.stdout.startswith(SAID[name])
