"""Machine code that many programs call: threads that make it at once get the same."""

import pickle
import threading
import time

import numpy as np
import pytest

from minijax.collectives import all_reduce as exchange_steps
from minijax.llvm.targets import host_target
from minijax.matmul import gemm
from minijax.matmul.gemm import MicroTile
from minijax.pytrees.registry import _namedtuple_kind, node_kinds
from minijax.rematerialization.caching import memoize
from minijax.sharding import Mesh, NamedSharding, PartitionSpec
from minijax.sharding import named_sharding as named_shardings
from minijax.sorting import radix_sort as radix
from minijax.windows import convolution_tiles as tap_products

FLOAT, TARGET = np.dtype("float32"), host_target()
TILE = MicroTile(2, 2, 8, FLOAT)
MAKERS = {
    "products": (gemm, "gemm_library", "TargetLibrary", (FLOAT, TARGET)),
    "sorting": (radix, "sort_library", "TargetLibrary", (4, TARGET)),
    "windows": (tap_products, "tap_library", "TargetLibrary", (TILE, TARGET)),
    "replicas": (exchange_steps, "collectives_library", "LowLevelLibrary", ()),
}


def in_threads(function, count=8):
    """Return what several threads get that call a function at the same time."""
    begin, found = threading.Barrier(count, timeout=100), []

    def work():
        begin.wait()
        found.append(function())

    threads = [threading.Thread(target=work) for _ in range(count)]
    for step in threading.Thread.start, threading.Thread.join:
        list(map(step, threads))
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_a_library_is_made_once(name, monkeypatch):
    module, maker, library, key = MAKERS[name]
    made = []

    class Slow:
        def __init__(self, *args):
            made.append(self)
            time.sleep(0.1)
            self.engine = self

        def get_function_address(self, name):
            return 0

    monkeypatch.setattr(module, library, Slow)
    monkeypatch.setattr(module, "add_symbol", lambda *args: None, raising=False)
    make = getattr(module, maker)
    fresh = memoize(make.__wrapped__.__wrapped__)  # without what was made before
    found = in_threads(lambda: fresh(*key))
    assert len(made) == 1 and len({*map(id, found)}) == 1 and len(found) == 8
    assert fresh(*key) is found[0]


def test_results_of_none_are_kept_and_other_keys_are_others():
    calls = []
    made = memoize(lambda *key: calls.append(key))
    assert made(1) is made(1) is made(2) is None and calls == [(1,), (2,)]


def test_devices_of_a_sharding_are_one_device():
    import minijax

    names = [f"axis{i}" for i in range(50)]
    for name in names:
        mesh = Mesh(np.array(minijax.devices()[:1]), (name,))
        spec = PartitionSpec(name)
        found = in_threads(lambda m=mesh, s=spec: NamedSharding(m, s).placement, 4)
        assert len({*map(id, found)}) == 1
        assert len({id(x.device) for x in found}) == 1
    assert named_shardings._device(mesh, spec) is found[0].device
    assert pickle.loads(pickle.dumps(found[0].device)) is found[0].device


def test_kinds_of_named_tuples_are_one(monkeypatch):
    from collections import namedtuple

    for _ in range(50):
        kind = namedtuple("Pair", "left right")
        found = in_threads(lambda kind=kind: _namedtuple_kind(kind), 4)
        assert len({*map(id, found)}) == 1 and kind not in node_kinds
