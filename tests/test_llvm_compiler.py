"""Machine code: how long it lives, and who may call it."""

import gc
import mmap
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from minijax.llvm.compiler import Library, load_object_code, object_code

TEXT = """
define void @add(float* %x, float* %out) {
  %a = load float, float* %x
  %b = fadd float %a, NUMBER
  store float %b, float* %out
  ret void
}
"""


def library(number=1.0):
    return Library(TEXT.replace("NUMBER", f"{number}"))


def call(function, value=1.0):
    x, out = np.array([value], "f"), np.zeros(1, "f")
    function(x.ctypes.data, out.ctypes.data)
    return float(out[0])


def test_functions_keep_their_library():
    function = library().function("add", 2)
    gc.collect()
    assert call(function) == 2


def test_libraries_go():
    gone = weakref.ref(library())
    gc.collect()
    assert gone() is None


def test_many_libraries():
    functions = [library(float(number)).function("add", 2) for number in range(20)]
    assert [call(function) for function in functions] == [1.0 + n for n in range(20)]
    del functions[::2]
    gc.collect()
    assert call(functions[3]) == 8


def test_threads():
    found = {}

    def work(number):
        found[number] = call(library(float(number)).function("add", 2))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n + 1.0 for n in range(8)}


def test_assembly():
    assert "add:" in library().assembly and "ret" in library().assembly


def test_errors_name_the_line():
    with pytest.raises(RuntimeError, match="expected"):
        Library("define void @f( {")


def test_libraries_give_memory_back():
    pages = Path("/proc/self/statm")
    if not pages.exists():
        pytest.skip("this system does not tell how much memory a process has")

    def resident():
        gc.collect()
        return int(pages.read_text().split()[1]) * mmap.PAGESIZE

    for number in range(10):
        library(number + 0.5)
    before = resident()
    for number in range(40):
        library(number + 0.25)
    assert resident() - before < 40 * 25_000  # 70,000 with lists of passes left behind


def test_code_is_loaded_and_nothing_compiled(monkeypatch):
    """An engine of LLVM begins with a module, and would compile it, too."""
    code, engines, create = object_code(library()), [], binding.create_mcjit_compiler
    monkeypatch.setattr(
        binding, "create_mcjit_compiler",
        lambda *args: engines.append(create(*args)) or engines[-1],
    )  # fmt: skip
    assert load_object_code(code).get_function_address("add")
    assert not engines[0]._modules
