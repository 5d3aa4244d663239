"""Targets: what a processor has and what things cost there; schedules for it.

References: https://llvmlite.readthedocs.io (binding layer), J. Ragan-Kelley and
others, "Halide" (PLDI 2013): what is computed, and a schedule that says how.
"""

# Made from chapters/18_llvm_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import os
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from minijax.arrays.dtypes import config
from minijax.jaxprs.types import Hook
from minijax.kernels.ir import scalar_ops
from minijax.kernels.loop_nests import loop_nest
from minijax.llvm.codegen import KernelEmitter, emit_kernel_function
from minijax.llvm.compiler import Library, dispose_passes, parse_module, target_machine

# Targets: one record for what a processor is called, what it has, what things cost.


class Target(NamedTuple):
    """A processor for which code is made, and what things cost on it.

    A cost is a number of flops: how many operations on floats take as long.

    Attributes:
      triple: the system, as LLVM calls it, such as ``x86_64-unknown-linux-gnu``.
      cpu: the processor, as LLVM calls it.
      features: what it can do, as LLVM spells it; empty: what LLVM knows of `cpu`.
      vector_bytes: the size of its widest vectors.
      registers: how many registers for vectors it has.
      caches: the bytes of its caches, the nearest first.
      threads: how many of them run at once.
      launch_cost: the cost of starting a kernel.
      byte_cost: the cost of a byte that goes to memory or comes from it.
      cache_byte_cost: the cost of a byte that comes from a cache.
      function_cost: the cost of an elementary function.
      cache_elements: how many numbers of 64 bits stay near between two sweeps.
      broadcast_elements: how few numbers have no direction in which they lie.
      recompute_cost: the most that an element may cost to be computed again.
      max_fused_ops: how many operations a kernel should have at most.
      bandwidth: how many bytes a thread moves in a nanosecond.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int = 16
    caches: tuple = (2**15, 2**19, 2**23)
    threads: int = 1
    launch_cost: int = 1000
    byte_cost: float = 2
    cache_byte_cost: float = 0.25
    function_cost: int = 20
    cache_elements: int = 2**14
    broadcast_elements: int = 2**10
    recompute_cost: int = 250
    max_fused_ops: int = 150
    bandwidth: float = 40

    @property
    def key(self):
        """A text that differs where LLVM makes other code of the same text."""
        return "|".join(map(str, self[:4]))

    @property
    def halves(self):
        """Whether it converts numbers of 16 bits: F16C on x86; NEON always does."""
        if not self.triple.startswith(_X86):
            return self.triple.startswith(("aarch64", "arm64"))
        listed = "+f16c" in self.features.split(",")
        return listed if self.features else self.vector_bytes >= 32

    def lanes(self, dtype):
        """Return how many numbers of a dtype a vector holds."""
        return self.vector_bytes // dtype.itemsize

    def price(self, op):
        """Return the cost of a scalar operation, by its name in `scalar_ops`."""
        kind = scalar_ops[op].cost if op in scalar_ops else "flops"
        return self.function_cost if kind == "transcendentals" else int(kind == "flops")

    def work(self, counts):
        """Return the cost of counts of operations, a dictionary, as of `operations`."""
        elementary = self.function_cost * counts.get("transcendentals", 0)
        return counts.get("flops", 0) + elementary


_X86 = ("x86_64", "amd64")
_LINUX = "{}-unknown-linux-gnu".format

# Kinds of processors by name; the last one is made up, to try what decides by costs.
TARGETS = {
    "plain": Target(_LINUX("x86_64"), "x86-64", "", 16),
    "avx2": Target(_LINUX("x86_64"), "x86-64-v3", "", 32),
    "avx512": Target(_LINUX("x86_64"), "x86-64-v4", "", 64, registers=32),
    "aarch64": Target(_LINUX("aarch64"), "generic", "", 16, registers=32),
    "gpu": Target(
        "none", "made-up", "", 128, registers=255, caches=(2**17, 2**25),
        threads=2**14, launch_cost=10**6, byte_cost=40, function_cost=4, bandwidth=1000,
    ),
}  # fmt: skip
FORCED_TARGETS = ("plain", "avx2", "avx512")  # what the switch ``minijax_cpu`` may name


def _kind(name):
    if name not in ("", *FORCED_TARGETS):
        raise ValueError(f"There is no {name!r} among {['', *FORCED_TARGETS]}.")
    return name


config.define("minijax_cpu", os.environ.get("MINIJAX_CPU", ""), _kind)


def current_target():
    """Return the target that the switch ``minijax_cpu`` names, or this computer."""
    return forced_target(config.minijax_cpu) if config.minijax_cpu else host_target()


@functools.cache
def host_target():
    """Return the target that this computer is."""
    from llvmlite import binding

    binding.initialize_native_target()
    triple, name = binding.get_default_triple(), binding.get_host_cpu_name()
    features = binding.get_host_cpu_features()
    width = vector_bytes(triple, {name for name, here in features.items() if here})
    found = Target(triple, name, features.flatten(), width, registers(triple, width))
    return found._replace(
        caches=cache_sizes() or found.caches, threads=os.cpu_count() or 1
    )


def forced_target(kind):
    """Return a processor that is "plain", or one with "avx2" or "avx512".

    Raises:
      ValueError: if this computer is of a family that has no such processors.
    """
    triple = host_target().triple
    if triple.startswith(_X86):
        return TARGETS[kind]._replace(triple=triple)
    if kind != "plain":
        raise ValueError(f"There is no {kind!r} on {triple}; there is 'plain'.")
    return TARGETS["aarch64"]._replace(triple=triple)


def refusal(target):
    """Return a function that refuses to run code for wider vectors than ours, or None.

    Such code may be made and looked at; the processor would end the process at the
    first instruction that it does not know.
    """
    here = host_target()
    if target.vector_bytes <= here.vector_bytes:
        return None

    def refuse(*args):
        raise RuntimeError(
            f"This code is for {target.cpu}, with vectors of {target.vector_bytes} "
            f"bytes, and this processor has vectors of {here.vector_bytes}. Set "
            "minijax_cpu (the variable MINIJAX_CPU) to '' for this processor."
        )

    return refuse


def vector_bytes(triple, features):
    """Return the size of the widest vectors of a processor with some features."""
    if not triple.startswith(_X86):
        return 16  # aarch64: NEON
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
        return 64
    return 32 if {"avx2", "fma"} <= features else 16


def registers(triple, width):
    """Return how many registers for vectors of this width a processor has."""
    return 16 if triple.startswith(_X86) and width < 64 else 32


def cache_sizes(folder="/sys/devices/system/cpu/cpu0/cache"):
    """Return the bytes of the caches for data, nearest first; none if not known."""
    sizes = {}
    for path in Path(folder).glob("index*"):
        kind, level, size = (_line(path, name) for name in ("type", "level", "size"))
        if kind != "Instruction" and size.endswith("K"):
            sizes[level] = 1024 * int(size.removesuffix("K"))
    return tuple(size for _, size in sorted(sizes.items()))


def _line(folder, name):
    path = folder / name
    return path.read_text().strip() if path.exists() else ""


def optimize_module(binding, text, target):
    """Return a module after a few cheap passes, and the machine it is meant for."""
    processor = target.triple, target.cpu, target.features
    machine = target_machine(binding, *processor, level=_CODEGEN_LEVEL)
    module = parse_module(binding, text, machine)
    run_passes(binding, module, machine, _PASSES)
    if not is_valid(module):
        module = parse_module(binding, text, machine)
        run_passes(binding, module, machine, _PASSES_WITH_MEMORY)
    return module, machine


def is_valid(module):
    """Return whether LLVM can make code of a module; if not, it ends the process."""
    try:
        return module.verify() is None
    except RuntimeError:
        return False


# At LLVM's default level, 2, instructions are put in order once more after they have
# registers. Processors that run them out of order gain nothing from it.
_CODEGEN_LEVEL = 1

# What the code generator leaves out: addresses are in front of their loops already.
_CODEGEN_OPTION = "-disable-lsr"


@contextmanager
def codegen_option():
    """Let LLVM's code generator leave out what it need not do, for a while.

    The switch is one for all threads: another's code may be made with it, or without.
    """
    from llvmlite import binding

    binding.set_option("", f"{_CODEGEN_OPTION}=true")
    try:
        yield
    finally:
        binding.set_option("", f"{_CODEGEN_OPTION}=false")


# What is run on a module, as the two pass managers of llvmlite call it.
_PASSES = [
    ("add_always_inliner_pass", "add_always_inliner_pass"),
    ("add_sroa_pass", "add_sroa_pass"),
    ("add_instruction_combine_pass", "add_instruction_combining_pass"),
    ("add_simplify_cfg_pass", "add_cfg_simplification_pass"),
]

# LLVM 22.1 may break a module when memory becomes registers: where the second half of a
# vector is stored before the first, the whole is put together before both are there
# (https://github.com/llvm/llvm-project/pull/189680). Then memory stays memory.
_PASSES_WITH_MEMORY = [names for names in _PASSES if names[0] != "add_sroa_pass"]


def run_passes(binding, module, machine, passes):
    """Run some passes; llvmlite 0.44 has all of them in its old manager alone."""
    new = binding.create_new_module_pass_manager()
    if all(hasattr(new, name) for name, _ in passes):
        for name, _ in passes:
            getattr(new, name)()
        options = binding.create_pipeline_tuning_options()
        # A builder is for one run: llvmlite puts into it what lives as long as the run.
        new.run(module, binding.create_pass_builder(machine, options))
        return dispose_passes(binding, new)
    old = binding.create_module_pass_manager()
    machine.add_analysis_passes(old)
    for _, name in passes:
        getattr(old, name)()
    return old.run(module)


class TargetLibrary(Library):
    """Machine code for a target, made with few passes.

    Args:
      text: of an LLVM module.
      target: a `Target`.
    """

    def __init__(self, text, target):
        self.target = target
        super().__init__(text)

    def prepared(self, binding):
        """Return the module after the cheap passes, and the machine it is meant for."""
        return optimize_module(binding, self.text, self.target)

    def recipe(self, binding):
        """Return what the code depends on beside the text: the target, the passes."""
        return f"{self.target.key} {_PASSES} code {_CODEGEN_LEVEL} {_CODEGEN_OPTION}"

    def generated(self, form):
        """Return the machine code, as `Library` does."""
        with codegen_option():
            return super().generated(form)

    def function(self, name, arity):
        """Return a function of the library that takes so many addresses."""
        return refusal(self.target) or super().function(name, arity)


# The function of a kernel for a target, with the schedule that higher floors hand in.

# A function of a kernel and a target that returns the steps of the kernel's nest.
scheduler = Hook(lambda kernel, target: loop_nest(kernel))

# What writes the call of an elementary function (see `KernelEmitter`), or None.
function_emitter = Hook(None)


def kernel_function(kernel, name, target):
    """Return the `FunctionIR` of a kernel: its arguments are addresses of buffers.

    Args:
      kernel: a `Kernel`.
      name: of the function.
      target: the `Target` that it is meant for. Callers contain it where all axes are
        short.
    """
    short = all(size <= 16 for size in kernel.sizes)
    where = "alwaysinline" if short else "noinline"
    return emit_scheduled_kernel(
        kernel, name, scheduler.value(kernel, target), where, target
    )


def emit_scheduled_kernel(kernel, name, steps, where, target, more=()):
    """Return the `FunctionIR` of a kernel's steps; `more` are further parameters."""
    f = KernelEmitter(kernel, function_emitter.value)
    f.halves = target.halves
    return emit_kernel_function(f, name, steps, attributes(where, target), more)


def attributes(where, target):
    """Return what LLVM is told of a function: where it stands, how wide vectors are."""
    return f'nounwind {where} "prefer-vector-width"="{8 * target.vector_bytes}"'
