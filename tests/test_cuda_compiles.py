"""NVIDIA's compiler takes our kernels, and the check of what it says can fail."""

import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.schedules import specialize_for_gpu
from minijax.kernels.lowering import lower
from tests import cuda_compiles
from tests.cuda_cases import source_of
from tests.cuda_compiles import (
    ARCHITECTURES,
    MISSING,
    assembly,
    compiled,
    problems,
    sources,
    usage,
)

needs_nvrtc = pytest.mark.skipif(cuda_compiles.compiler() is None, reason=MISSING)

LOG = """ptxas info    : Compiling entry function 'k' for 'sm_75'
ptxas info    : Function properties for k
    40 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 70 registers, 360 bytes cmem[0]
"""


def test_logs_are_read():
    assert usage(LOG) == {"k": (70, 8, 40)}
    assert usage("") == {}


def test_without_the_compiler_a_line_says_so(monkeypatch, capsys):
    monkeypatch.setattr(cuda_compiles, "compiler", lambda: None)
    monkeypatch.setattr("sys.argv", ["cuda_compiles"])
    assert cuda_compiles.main() == 0
    assert "pip install nvidia-cuda-nvrtc" in capsys.readouterr().out


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_compile_without_spills(arch):
    for source in sources(seed=3, count=5):
        assert not problems(source, arch)


@needs_nvrtc
def test_the_check_can_fail():
    many = "".join(f"const float v{i} = x[{i} * n];" for i in range(90))
    total = "".join(f"x[{i} * m] = v{i} * v{7 * i % 90};" for i in range(90))
    text = f'extern "C" __global__ void k(float* x, int n, int m) {{ {many} {total} }}'
    assert "registers" in problems(text, 75)[0]
    bounded = text.replace("void k", "void __launch_bounds__(1024) k")
    narrow = bounded.replace("__launch_bounds__(1024)", "__launch_bounds__(1024, 2)")
    assert compiled(narrow, 80)["k"].spilled > 0
    assert "spilled" in problems(narrow, 80)[0]
    assert "error" in problems(text.replace("v0 ", "w0 ", 1), 75)[0]


@needs_nvrtc
def test_vectors_are_loaded_and_stored_by_one_instruction():
    program = specialize_for_gpu(
        fuse(lower(make_jaxpr(lambda x: x * 2)(jnp.zeros(4096))))
    )
    text = assembly(source_of(program.kernels, "shape"), 75)
    assert "v4" in text.split("ld.global")[1].split(";")[0]
    assert "v4" in text.split("st.global")[1].split(";")[0]
