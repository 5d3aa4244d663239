"""Kernels in CUDA C, compiled by NVIDIA's own compiler, without a card or a driver.

python -m tests.cuda_compiles                  kernels of programs, random ones, loops
python -m tests.cuda_compiles --count 200      more random kernels
python -m tests.cuda_compiles --arch 90        for one kind of card only
python -m tests.cuda_compiles --met FOLDER     what `tests.cuda_sources` has kept there

It needs NVRTC: pip install nvidia-cuda-nvrtc-cu12==12.8.93 (the one that Colab has).
Each kernel has to compile for all cards, with 64 registers at most and no spills.
"""

import ctypes
import functools
import glob
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import minijax.numpy as jnp
from minijax import grad, lax, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.block_kernels import fits_block, render_block_loop
from minijax.gpu.cuda_source import PRELUDE
from minijax.gpu.schedules import specialize_for_gpu
from minijax.kernels.lowering import lower
from tests import kernel_cases
from tests.commands import options_of, reported
from tests.cuda_cases import LAUNCHES, SCHEDULES, CardChance, source_of

ARCHITECTURES = (75, 80, 86, 89, 90)
REGISTERS = 64
# Functions of CUDA's own library that keep a table on the stack for huge arguments.
WITH_STACK = re.compile(r"\b(sin|cos|tan)f?\(")
MISSING = (
    "NVRTC is not installed here, so that no source was compiled for a card: "
    "pip install nvidia-cuda-nvrtc-cu12==12.8.93"
)


@functools.cache
def compiler():
    """Return the library of NVRTC, or None where it is not installed."""
    places = [Path(p) / "nvidia" for p in sys.path]
    places += [Path(p) for p in os.environ.get("NVRTC_PATH", "").split(":") if p]
    for place in places:
        pattern = str(place / "**" / "libnvrtc.so.1*")
        for path in sorted(glob.glob(pattern, recursive=True)):
            library = ctypes.CDLL(path)
            library.nvrtcGetErrorString.restype = ctypes.c_char_p
            return library
    return None


class Usage(NamedTuple):
    """What a kernel takes of a card: registers of a thread, and bytes."""

    registers: int
    spilled: int
    stack: int


def assembly(source, arch):
    """Return what the compiler makes of a source, in the language PTX."""
    return _made(source, arch, "PTX")


def compiled(source, arch):
    """Return the `Usage` of each kernel of a source.

    Args:
      source: CUDA C.
      arch: the number of an architecture, such as 75.

    Raises:
      RuntimeError: with what the compiler says, if it refuses the source.
    """
    return usage(_made(source, arch, "ProgramLog"))


def _made(source, arch, what):
    """Compile a source; return one of the texts that the compiler has then."""
    library, program = compiler(), ctypes.c_void_p()
    text = source.encode()
    library.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None)
    options = [f"-arch=sm_{arch}", "--ptxas-options=-v", "-std=c++17", "-ftz=false"]
    given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    try:
        if library.nvrtcCompileProgram(program, len(options), given):
            raise RuntimeError(_text(library, program, "ProgramLog"))
        return _text(library, program, what)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library, program, what):
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


def usage(log):
    """Return the `Usage` of kernels that a compiler's log reports, by their names."""

    def number(text, pattern):
        found = re.search(pattern, text)
        return int(found[1]) if found else 0

    found = {}
    for text in log.split("Compiling entry function ")[1:]:
        name = re.match(r"'(\w+)'", text)[1]
        spilled = number(text, r"(\d+) bytes spill stores")
        registers = number(text, r"Used (\d+) registers")
        found[name] = Usage(registers, spilled, number(text, r"(\d+) bytes stack"))
    return found


def problems(source, arch):
    """Return what is wrong with the kernels of a source on one kind of card."""
    try:
        found = compiled(source, arch)
    except RuntimeError as error:
        return [f"sm_{arch}: {error}"]
    parts = re.split(r'(?=extern "C"|__device__ void)', source)  # loops have helpers
    texts = {
        name: "".join(x for x in parts if re.search(rf"\b{name}(_\d+)?\(", x))
        for name in found
    }
    wrong = []
    for name, (registers, spilled, stack) in found.items():
        stack_is_known = WITH_STACK.search(texts.get(name, ""))
        if registers > REGISTERS or spilled or (stack and not stack_is_known):
            used = f"{registers} registers, {spilled} spilled, {stack} of stack"
            wrong.append(f"sm_{arch}: {name}: {used}")
    return wrong


# What is compiled.


def softmax(x):
    """Rows that sum to 1."""
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x, g, b):
    """Rows with mean 0 and variance 1, scaled and shifted."""
    x = x - x.mean(axis=1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * g + b


def followed(belief, moves, seen):
    """Beliefs about a hidden state, one observation after the other."""

    def step(belief, likelihood):
        found = (belief[:, None] * moves).sum(axis=0) * likelihood
        return found / found.sum(), jnp.log(found.sum())

    return lax.scan(step, belief, seen)


def programs():
    """Return functions with arguments, by names."""
    x, v, m = jnp.zeros((256, 512)), jnp.zeros(512), jnp.zeros(100_003)
    half = x.astype("bfloat16")
    lifted = grad(lambda *args: (layer_norm(*args) * x).sum(), (0, 1, 2))
    return {
        "selu": (lambda x, b: jnp.where(x + b > 0, x + b, jnp.expm1(x + b)), x, v),
        "softmax": (softmax, x),
        "softmax of halves": (softmax, half),
        "layer norm": (layer_norm, x, v, v),
        "its gradient": (lifted, x, v, v),
        "a sum": (lambda x: x.sum(), m),
        "shares": (lambda x: x / x.sum(), m),
        "totals": (jnp.cumsum, m),
        "totals of rows": (lambda x: jnp.cumsum(x, axis=1), x),
        "columns": (lambda x: x.sum(axis=0), jnp.zeros((20_000, 100))),
        "turned": (lambda x: x.T * 2, x),
        "turned halves": (lambda x: jnp.tanh(x.T), half),
        "a chain": (followed, jnp.ones(16), jnp.ones((16, 16)), jnp.ones((50, 16))),
    }


def sources(seed=0, count=60):
    """Return texts of modules: kernels of programs, of loops, random ones forced."""
    kernels, loops = {}, []
    for number, (f, *args) in enumerate(programs().values()):
        program = specialize_for_gpu(fuse(lower(make_jaxpr(f)(*args))))
        kernels |= program.kernels
        fitting = [step for step in program.steps if fits_block(step)]
        loops += [
            render_block_loop(x, f"loop{number}_{k}") for k, x in enumerate(fitting)
        ]
    found = [source_of(kernels, "shape"), PRELUDE + "\n".join(loops)]
    for chance in (CardChance, kernel_cases.PlacesChance):
        met = kernel_cases.random_kernels(seed, count, chance)
        drawn = {kernel.label: kernel for kernel, _ in met}
        found += [source_of(drawn, how) for how in [*LAUNCHES, *SCHEDULES]]
    return found


def texts_of(options):
    """Return the texts that a command line asks for."""
    if options.met:
        return [path.read_text() for path in sorted(Path(options.met).glob("*.cu"))]
    return sources(options.seed, options.count)


def main():
    """Compile all; 1 if something is wrong."""
    options = options_of(__doc__, seed=0, count=60, arch=0, met="")
    if compiler() is None:
        print(MISSING)
        return 0
    texts, wrong = texts_of(options), []
    count = sum(text.count("__global__") for text in texts)
    for arch in [options.arch] if options.arch else ARCHITECTURES:
        found = [problem for text in texts for problem in problems(text, arch)]
        print(f"sm_{arch}: {count} kernels, {len(found)} problems", flush=True)
        wrong += found
    return reported(f"{count} kernels", wrong)


if __name__ == "__main__":
    sys.exit(main())
