"""Machine code that many programs call: threads that make it at once keep theirs."""

import gc
import threading
import weakref

import numpy as np
import pytest

from minijax.llvm.targets import host_target
from minijax.matmul import gemm
from minijax.sorting import radix

MAKERS = {
    "products": (gemm, gemm.library, np.dtype("float32")),
    "sorting": (radix, radix.sort_library, 4),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_another_thread_has_made_stays(name, monkeypatch):
    module, make, key = MAKERS[name]
    both, made = threading.Barrier(2, timeout=100), []

    class Slow:
        def __init__(self, text, target):
            made.append(weakref.ref(self))
            both.wait()

    monkeypatch.setattr(module, "TargetLibrary", Slow)
    monkeypatch.setattr(module, "_kept", [])
    make.cache_clear()
    threads = [threading.Thread(target=make, args=(key, host_target())) for _ in "ab"]
    _ = [thread.start() for thread in threads], [thread.join() for thread in threads]
    make.cache_clear()
    gc.collect()
    assert len(made) == 2 and all(each() for each in made)
