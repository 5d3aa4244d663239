# Made from chapters/22_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Processors: what LLVM calls them, and how wide their vectors are.

Reference: https://llvmlite.readthedocs.io (binding layer).
"""

import functools
import os
from typing import NamedTuple

from minijax.arrays.settings import config
from minijax.jitting.compilation import processor
from minijax.llvm.compiler import Library, give_back

_X86 = ("x86_64", "amd64")


class Target(NamedTuple):
    """A processor for which code is made.

    Attributes:
      triple: the system, as LLVM calls it, such as ``x86_64-unknown-linux-gnu``.
      cpu: the processor, as LLVM calls it.
      features: what it can do, as LLVM spells it; empty: what LLVM knows of `cpu`.
      vector_bytes: the size of its widest vectors.
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int

    @property
    def key(self):
        """A text that differs where machine code may differ."""
        return "|".join(map(str, self))

    @property
    def registers(self):
        """How many registers for vectors it has."""
        few = self.vector_bytes < 64 and self.triple.startswith(_X86)
        return 16 if few else 32

    def lanes(self, dtype):
        """Return how many numbers of a dtype a vector holds."""
        return self.vector_bytes // dtype.itemsize


# Kinds of processors: LLVM's name for the least of a kind, and bytes in a vector.
_KINDS = {
    "plain": ("x86-64", 16),
    "avx2": ("x86-64-v3", 32),
    "avx512": ("x86-64-v4", 64),
}


def _kind(name):
    if name not in ("", *_KINDS):
        raise ValueError(f"There is no {name!r} among {['', *_KINDS]}.")
    return name


config.define("minijax_cpu", os.environ.get("MINIJAX_CPU", ""), _kind)
processor.value = lambda: config.minijax_cpu


def current_target():
    """Return the target that the switch ``minijax_cpu`` names, or this computer."""
    return forced_target(config.minijax_cpu) if config.minijax_cpu else host_target()


@functools.cache
def host_target():
    """Return the target that this computer is."""
    from llvmlite import binding

    binding.initialize_native_target()
    triple = binding.get_default_triple()
    features = binding.get_host_cpu_features()
    width = vector_bytes(triple, {name for name, here in features.items() if here})
    return Target(triple, binding.get_host_cpu_name(), features.flatten(), width)


def forced_target(kind):
    """Return a processor that is "plain", or one with "avx2" or "avx512".

    Raises:
      ValueError: if this computer is of a family that has no such processors.
    """
    cpu, width = _KINDS[kind]
    triple = host_target().triple
    if not triple.startswith(_X86):
        if kind != "plain":
            raise ValueError(f"There is no {kind!r} on {triple}; there is 'plain'.")
        cpu = "generic"
    return Target(triple, cpu, "", width)


def vector_bytes(triple, features):
    """Return the size of the widest vectors of a processor with some features."""
    if not triple.startswith(_X86):
        return 16  # aarch64: NEON
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
        return 64
    return 32 if {"avx2", "fma"} <= features else 16


def target_machine(binding, target):
    """Return LLVM's description of a target."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2
    )


def prepared(binding, text, target):
    """Return a module after a few cheap passes, and the machine it is meant for."""
    machine = target_machine(binding, target)
    module = parsed(binding, text, machine)
    run_passes(binding, module, machine, _PASSES)
    if not is_valid(module):
        module = parsed(binding, text, machine)
        run_passes(binding, module, machine, _PASSES_WITH_MEMORY)
    return module, machine


def parsed(binding, text, machine):
    """Return the module of a text, for a machine."""
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return module


def is_valid(module):
    """Return whether LLVM can make code of a module; if not, it ends the process."""
    try:
        return module.verify() is None
    except RuntimeError:
        return False


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
        new.run(module, binding.create_pass_builder(machine, options))
        return give_back(binding, new)
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
        return prepared(binding, self.text, self.target)

    def recipe(self, binding):
        """Return what the code depends on beside the text: the target, the passes."""
        return f"{self.target.key} {_PASSES}"
