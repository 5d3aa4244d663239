"""The one module that touches CuPy: beside CuPy itself, and beside what stands in."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax.cuda import driver
from minijax.cuda.driver import CudaContext, cupy_stand_in
from minijax.errors import JaxRuntimeError
from minijax_book import emulator
from minijax_book.emulator.cupy_card import EmulatedCudaError, EmulatedCuPy

needs_compiler = pytest.mark.skipif(
    not emulator.is_there(), reason="no C++ compiler here"
)
TREE = ast.parse(inspect.getsource(driver))
TWICE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
# What variables and attributes of the module hold, of CuPy's.
HELD = {
    "runtime": "cuda.runtime", "_stream": "cuda.Stream", "nvrtc": "cuda.nvrtc",
    "graph": "cuda.graph.Graph", "device": "cuda.Device",
    "module": "cuda.function.Module", "function": "cuda.function.Function",
    "event": "cuda.Event", "_near": "cuda.PinnedMemoryPointer", "cuda": "cuda",
}  # fmt: skip
OURS = {"self", "numbers", "error"}


def names_of_cupy():
    """The dotted names of CuPy that the module uses, and keywords of calls of them."""
    found = {}
    for node in ast.walk(TREE):
        call = node if isinstance(node, ast.Call) else None
        name = dotted(call.func if call else node)
        if name:
            found.setdefault(name, set()).update(
                keyword.arg for keyword in (call.keywords if call else [])
            )
    return found


def dotted(node):
    """The name of an attribute, from the module `cupy` on; None for other objects."""
    if isinstance(node, ast.Name):
        return "" if node.id == "cupy" else HELD.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    if node.attr in HELD and node.attr != "function":  # a module of CuPy, too
        return HELD[node.attr]
    if node.attr == "_cupy":
        return ""
    around = dotted(node.value)
    return None if around is None else f"{around}.{node.attr}".lstrip(".")


def test_the_names_are_found():
    names = names_of_cupy()
    assert names.keys() >= {
        "cuda.alloc", "cuda.Device", "cuda.Stream", "cuda.function.Module.load",
        "__version__", "cuda.function.Module.get_function", "cuda.driver.launchKernel",
        "cuda.nvrtc.createProgram", "cuda.nvrtc.compileProgram",
        "cuda.nvrtc.getSupportedArchs", "cuda.nvrtc.getProgramLog",
        "cuda.nvrtc.NVRTCError", "cuda.nvrtc.destroyProgram", "cuda.nvrtc.getVersion",
        "cuda.function.Function.ptr",
        "cuda.Stream.synchronize", "cuda.graph.Graph.launch",
        "cuda.Stream.begin_capture", "cuda.Stream.end_capture", "cuda.Stream.ptr",
        "cuda.Event.record", "cuda.Event.synchronize", "cuda.alloc_pinned_memory",
        "cuda.PinnedMemoryPointer.ptr", "cuda.runtime.memcpyAsync",
        "cuda.runtime.CUDARuntimeError", "cuda.Stream.done",
        "cuda.runtime.memcpyHostToDevice", "cuda.runtime.getDeviceProperties",
    }  # fmt: skip
    assert names["cuda.Stream"] == {"non_blocking"}


CONTRACT = """
import sys, cupy
for line in sys.stdin.read().splitlines():
    name, *keywords = line.split()
    thing, told = cupy, ""
    for part in name.split("."):
        told = str(getattr(thing, "__doc__", ""))
        if not hasattr(thing, part):  # of its objects alone, which need a driver
            assert "." + part + " (" in told, f"there is no {name}"
            break
        thing = getattr(thing, part)
    told = str(getattr(thing, "__doc__", ""))
    for word in keywords:
        assert word in told, f"{name} takes no {word}"
    print(name)
"""


def test_cupy_has_these_names():
    """With CuPy installed here, or where `CUPY_PYTHON` is; a driver is not needed."""
    python = os.environ.get("CUPY_PYTHON") or sys.executable
    if not os.environ.get("CUPY_PYTHON") and not importlib.util.find_spec("cupy"):
        pytest.skip("no CuPy here: its names are not checked")
    names = names_of_cupy()
    lines = [" ".join([name, *names[name]]) for name in names if name]
    done = subprocess.run(
        [python, "-c", CONTRACT], input="\n".join(lines), text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-800:]
    assert done.stdout.splitlines() == [name for name in names if name]


def test_no_other_module_touches_cupy():
    for path in Path(minijax.__file__).parent.rglob("*.py"):
        text = path.read_text()
        imports = re.search(r"^\s*(import|from) cupy|import_module\(\"cupy", text, re.M)
        assert bool(imports) == (path.name == "driver.py"), path


@pytest.fixture
def card(monkeypatch):
    monkeypatch.setattr(cupy_stand_in, "value", EmulatedCuPy(memory=2**16))
    return CudaContext(0)


@needs_compiler
def test_work_is_done_late_and_in_order(card):
    memory, near = card.allocate(16), np.zeros(4, np.float32)
    twice = card.load(TWICE, ["twice"])["twice"]
    card.copy_to_device(memory.ptr, np.float32([1, 2, 3, 4]))
    card.launch(twice, 1, 4, [memory.ptr])
    assert not card.is_done
    card.copy_to_host(near, memory.ptr)
    assert card.is_done and near.tolist() == [2, 4, 6, 8]


@needs_compiler
def test_what_is_copied_in_may_be_changed_at_once(card):
    memory, x, near = card.allocate(16), np.ones(4, np.float32), np.empty(4, np.float32)
    card.copy_to_device(memory.ptr, x)
    x[:] = 7
    card.copy_to_host(near, memory.ptr)
    assert near.tolist() == [1] * 4


@needs_compiler
def test_a_graph_is_done_when_it_is_replayed(card):
    memory, near = card.allocate(16), np.zeros(4, np.float32)
    twice = card.load(TWICE, ["twice"])["twice"]
    card.copy_to_device(memory.ptr, np.float32([1, 2, 3, 4]))
    graph = card.record(lambda: card.launch(twice, 1, 4, [memory.ptr]))
    card.copy_to_host(near, memory.ptr)
    assert near.tolist() == [1, 2, 3, 4]
    card.replay(graph)
    card.replay(graph)
    card.copy_to_host(near, memory.ptr)
    assert near.tolist() == [4, 8, 12, 16]


@needs_compiler
def test_while_a_graph_is_recorded_memory_is_not_asked_for_nor_waited_for(card):
    with pytest.raises(JaxRuntimeError, match="StreamCaptureUnsupported"):
        card.record(lambda: card.allocate(16))
    with pytest.raises(JaxRuntimeError, match="StreamCaptureUnsupported"):
        card.record(card.wait)
    card.wait()


@needs_compiler
def test_errors_name_the_latest_launches(card):
    memory = card.allocate(16)
    twice = card.load(TWICE, ["twice"])["twice"]
    card.launch(twice, 1, 4, [memory.ptr], "a good one")
    card.launch(twice, 1, 5, [memory.ptr], "one thread too many")
    with pytest.raises(JaxRuntimeError, match="a good one\n  one thread too many"):
        card.wait()
    card.wait()


@needs_compiler
def test_addresses_have_to_be_the_card_s(card):
    twice = card.load(TWICE, ["twice"])["twice"]
    x = np.ones(4, np.float32)
    with pytest.raises(JaxRuntimeError, match="cudaErrorIllegalAddress"):
        card.launch(twice, 1, 4, [x.ctypes.data])
    gone = card.allocate(16).ptr
    with pytest.raises(JaxRuntimeError, match="cudaErrorIllegalAddress"):
        card.launch(twice, 1, 4, [gone])
    with pytest.raises(MemoryError, match="131,072 bytes"):
        card.allocate(2**17)


@needs_compiler
def test_what_cannot_be_compiled_is_told_with_a_way_out(card):
    with pytest.raises(JaxRuntimeError, match="EmulatedCuda: .*_COMPIL") as caught:
        card.load(TWICE.replace("*= 2", "*= two"), ["twice"])
    assert "two" in str(caught.value) and "not declared" in str(caught.value)


@pytest.fixture
def kept(tmp_path):
    """Code is kept on disk, in a folder of its own."""
    minijax.config.update("jax_compilation_cache_dir", str(tmp_path))
    minijax.config.update("jax_enable_compilation_cache", True)
    yield
    minijax.config.update("jax_enable_compilation_cache", False)


@pytest.mark.parametrize("name", ["getSupportedArchs", "getVersion"])
def test_without_a_compiler_the_extra_is_named(name, card, monkeypatch, kept):
    def refused():
        raise RuntimeError("CuPy failed to load libnvrtc.so.12")

    monkeypatch.setattr(card._cupy.cuda.nvrtc, name, refused)
    with pytest.raises(JaxRuntimeError, match="failed to load libnvrtc") as caught:
        card.load(TWICE, ["twice"])
    assert "book[cuda12]" in str(caught.value)


@needs_compiler
def test_what_is_kept_on_disk_is_not_compiled_again(card, monkeypatch, kept):
    card.load(TWICE, ["twice"])
    monkeypatch.setattr(card, "compiled", None)
    twice = card.load(TWICE, ["twice"])["twice"]
    with pytest.raises(TypeError):
        card.load(TWICE.replace("2", "3"), ["twice"])
    memory, near = card.allocate(16), np.zeros(4, np.float32)
    card.copy_to_device(memory.ptr, np.float32([1, 2, 3, 4]))
    card.launch(twice, 1, 4, [memory.ptr])
    card.copy_to_host(near, memory.ptr)
    assert near.tolist() == [2, 4, 6, 8]


@needs_compiler
def test_a_newer_card_has_code_that_its_driver_compiles(card, monkeypatch):
    nvrtc, options = card._cupy.cuda.nvrtc, []
    monkeypatch.setattr(nvrtc, "getSupportedArchs", lambda: (75, 70))
    monkeypatch.setattr(nvrtc, "compileProgram", lambda _, given: options.append(given))
    monkeypatch.setattr(nvrtc, "getPTX", lambda _: b"ptx")
    assert card.compiled(TWICE) == b"ptx"
    assert options == [("-std=c++17", "-ftz=false", "-arch=compute_75")]


@pytest.mark.parametrize("id", [-1, 1, 7])
def test_a_card_has_to_be_there(id, card):
    with pytest.raises(RuntimeError, match=rf"no card {id}; there are 1"):
        CudaContext(id)


def test_a_card_that_refuses_leaves_no_lock_behind(card, monkeypatch):
    def refused(*_):
        raise EmulatedCudaError("cudaErrorDeviceUnavailable")

    for name in ("__enter__", "__exit__"):
        with monkeypatch.context() as patch:
            patch.setattr(type(card.device), name, refused)
            with pytest.raises((JaxRuntimeError, EmulatedCudaError), match="Unavail"):
                card.allocate(16)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(card.lock.acquire, timeout=5).result()


@needs_compiler
@pytest.mark.parametrize("ask", [CudaContext.wait, lambda card: card.is_done])
def test_who_waits_or_asks_does_not_disturb_a_graph_of_another_thread(card, ask):
    memory = card.allocate(16)
    twice = card.load(TWICE, ["twice"])["twice"]
    with ThreadPoolExecutor(1) as pool:

        def act():
            found.append(pool.submit(ask, card))
            time.sleep(0.05)
            card.launch(twice, 1, 4, [memory.ptr])

        found = []
        card.record(act)
        found[0].result(timeout=5)


@needs_compiler
def test_what_goes_wrong_while_a_graph_is_recorded_is_told(card):
    def act():
        raise KeyError("of the program")

    with pytest.raises(KeyError, match="of the program"):
        card.record(act)
    card.record(lambda: None)
