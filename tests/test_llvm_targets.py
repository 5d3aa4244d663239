"""Targets: what a processor is called, how wide its vectors are, how code is made."""

import subprocess
import sys

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit
from minijax.arrays.dtypes import config
from minijax.jitting.compilation import backends
from minijax.kernels.ir import scalar_ops
from minijax.llvm import targets
from minijax.llvm.targets import (
    TARGETS,
    TargetLibrary,
    cache_sizes,
    current_target,
    forced_target,
    host_target,
    vector_bytes,
)

AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"}
ADD = """
define void @twice(float* %x) {
  %a = load float, float* %x
  %b = fadd float %a, %a
  store float %b, float* %x
  ret void
}
"""


@pytest.mark.parametrize(
    ("triple", "features", "width"),
    [
        ("x86_64-unknown-linux-gnu", AVX512, 64),
        ("x86_64-unknown-linux-gnu", AVX512 - {"avx512vl"}, 32),
        ("x86_64-apple-darwin", {"avx2", "fma"}, 32),
        ("x86_64-pc-windows-msvc", {"avx"}, 16),
        ("aarch64-unknown-linux-gnu", {"sve"}, 16),
        ("arm64-apple-darwin", set(), 16),
    ],
)
def test_widths(triple, features, width):
    assert vector_bytes(triple, features) == width


def test_lanes_and_registers():
    plain, wide = forced_target("plain"), forced_target("avx512")
    assert [plain.lanes(np.dtype(n)) for n in ("int8", "float32", "float64")] == [
        16,
        4,
        2,
    ]
    assert wide.lanes(np.dtype("float32")) == 16
    assert (TARGETS["plain"].registers, wide.registers) == (16, 32)
    assert TARGETS["aarch64"].registers == 32


def test_plain_on_other_processors(monkeypatch):
    from llvmlite import binding

    triple = "aarch64-unknown-linux-gnu"
    monkeypatch.setattr(binding, "get_default_triple", lambda: triple)
    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "neoverse-n1")
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: Features(neon=True))
    host_target.cache_clear()
    try:
        with config.override("minijax_cpu", "plain"):
            assert current_target()[:5] == (triple, "generic", "", 16, 32)
        assert current_target()[:5] == (triple, "neoverse-n1", "+neon", 16, 32)
        with pytest.raises(ValueError, match="no 'avx2' on aarch64.*'plain'"):
            forced_target("avx2")
    finally:
        host_target.cache_clear()


class Features(dict):
    """What LLVM says of a processor."""

    def flatten(self):
        """Return it as LLVM spells it."""
        return ",".join(f"+{name}" for name in self)


def test_prices():
    plain, gpu = TARGETS["plain"], TARGETS["gpu"]
    free = next(name for name, row in scalar_ops.items() if not row.cost)
    assert [plain.price(op) for op in ("add", "exp", "index", free)] == [1, 20, 1, 0]
    assert gpu.price("exp") == gpu.function_cost < plain.function_cost
    assert gpu.launch_cost * plain.byte_cost > plain.launch_cost * gpu.byte_cost


def test_caches(tmp_path):
    assert cache_sizes(tmp_path) == ()
    for level, kind, size in [("1", "Data", "48K"), ("1", "Instruction", "32K")]:
        write_cache(tmp_path / f"index{kind}", level, kind, size)
    write_cache(tmp_path / "index2", "2", "Unified", "1024K")
    (tmp_path / "index3").mkdir()
    assert cache_sizes(tmp_path) == (48 * 1024, 2**20)


def write_cache(folder, level, kind, size):
    folder.mkdir()
    for name, text in {"level": level, "type": kind, "size": size}.items():
        (folder / name).write_text(f"{text}\n")


def test_switch():
    assert current_target() == host_target()
    with config.override("minijax_cpu", "avx2"):
        assert current_target() == forced_target("avx2")
    with pytest.raises(ValueError, match="There is no 'mmx'"):
        config.update("minijax_cpu", "mmx")


def test_the_switch_changes_what_is_compiled(monkeypatch):
    """Also for a function that has been called, and by each value no more than once."""
    made, make = [], backends["cpu"]

    def counting(closed, *args, **options):
        made.append(config.minijax_cpu)
        return make(closed, *args, **options)

    counting.donates = make.donates
    monkeypatch.setitem(backends, "cpu", counting)
    twice = jit(lambda x: x * 2, backend="cpu")
    for kind in ("", "plain", "", "plain"):
        with config.override("minijax_cpu", kind):
            assert [twice(1.5) for _ in range(4)] == [3.0] * 4
    assert made == ["", "plain"]


def test_keys_differ():
    targets = [host_target(), *map(forced_target, ("plain", "avx2", "avx512"))]
    assert len({target.key for target in targets}) == 4


@pytest.mark.parametrize("kind", ["", "plain"])
def test_library(kind):
    library = TargetLibrary(ADD, forced_target(kind) if kind else host_target())
    x = np.array([1.5], "float32")
    library.function("twice", 1)(x.ctypes.data)
    assert x[0] == 3
    assert "ret" in library.assembly
    assert library.target.key in library.recipe(None)


def test_code_of_another_level_is_not_taken_from_the_disk(monkeypatch):
    library = TargetLibrary(ADD, host_target())
    recipe = library.recipe(None)
    monkeypatch.setattr(targets, "_CODEGEN_LEVEL", 2)
    assert library.recipe(None) != recipe


EACH_13TH = """
define float @sum(float* %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %c = phi float [ 0.0, %entry ], [ %s, %loop ]
  %k = mul i64 %i, 13
  %p = getelementptr float, float* %x, i64 %k
  %y = load float, float* %p
  %s = fadd float %c, %y
  %n = add i64 %i, 1
  %more = icmp ult i64 %n, 100
  br i1 %more, label %loop, label %done
done:
  ret float %s
}
"""


def test_addresses_are_as_they_are_written():
    """Loop strength reduction would count them up; others in the process still can."""

    def others():
        from llvmlite import binding

        module, machine = targets.optimize_module(binding, EACH_13TH, host_target())
        return machine.emit_assembly(module)

    before = others()
    ours = TargetLibrary(EACH_13TH, host_target()).assembly
    assert others() == before != ours


# The second half of a vector is stored before the first, which is computed later.
HALVES = """
define void @halves(<2 x double>* %x, <4 x double>* %out) {
  %whole = alloca <4 x double>
  %low = bitcast <4 x double>* %whole to <2 x double>*
  %high = getelementptr <2 x double>, <2 x double>* %low, i64 1
  %a = load <2 x double>, <2 x double>* %x
  %b = fadd <2 x double> %a, %a
  store <2 x double> %b, <2 x double>* %high
  %next = getelementptr <2 x double>, <2 x double>* %x, i64 1
  %c = load <2 x double>, <2 x double>* %next
  %d = fadd <2 x double> %c, %c
  store <2 x double> %d, <2 x double>* %low
  %y = load <4 x double>, <4 x double>* %whole
  store <4 x double> %y, <4 x double>* %out
  ret void
}
"""


def test_modules_that_passes_break():
    code = "from tests.test_llvm_targets import halves; halves()"
    child = [sys.executable, "-c", code]
    done = subprocess.run(child, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "4.0 6.0 0.0 2.0\n"), done.stderr


def halves():
    memory = np.zeros(16)
    aligned = memory[-memory.ctypes.data // 8 % 8 :][:8]
    x, y = aligned[4:], aligned[:4]
    x[:] = range(4)
    library = TargetLibrary(HALVES, host_target())
    library.function("halves", 2)(x.ctypes.data, y.ctypes.data)
    print(*y)


def test_code_for_wider_vectors_is_refused_when_it_is_called(monkeypatch):
    """It would end the process by an illegal instruction."""
    if not host_target().triple.startswith("x86_64"):
        pytest.skip("There is one kind of vectors here.")
    plain = forced_target("plain")
    monkeypatch.setattr("minijax.llvm.targets.host_target", lambda: plain)
    with config.override("minijax_cpu", "avx2"):
        for backend in ("cpu", "vectors"):
            text = jit(lambda x: x + 1, backend=backend).lower(jnp.ones(9))
            assert "<8 x float>" in text.compile().as_text("llvm")
            with pytest.raises(RuntimeError, match="vectors of 32 bytes.*MINIJAX_CPU"):
                jit(lambda x: x + 1, backend=backend)(jnp.ones(9))
