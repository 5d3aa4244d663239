"""What all comparisons with JAX share.

Much of their time goes to XLA, which compiles thousands of programs that run once
each. So it compiles them quickly here, without the passes that make fast code; bits of
sums and of elementary functions may differ, which no comparison asks for.
`XLA_FLAGS= make oracle` compares with programs as XLA compiles them for users, from
which the tables are recorded.
"""

import functools
import itertools
import os

import jax
import pytest
from jax._src import compiler
from jax._src.interpreters import mlir

QUICKLY = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
]
if os.environ.get("MINIJAX_ORACLE") != "record":
    os.environ.setdefault("XLA_FLAGS", " ".join(QUICKLY))


def with_other_emitters(compile):
    """Compile once more what is not implemented in XLA's older, quicker emitters."""

    @functools.wraps(compile)
    def compiled(backend, module, devices, options, *rest):
        try:
            return compile(backend, module, devices, options, *rest)
        except jax.errors.JaxRuntimeError as error:
            if " unimplemented for " not in str(error):  # Clamp, of bools and complex
                raise
        others = [*options.env_option_overrides, ("xla_cpu_use_fusion_emitters", True)]
        options.env_option_overrides = others
        return compile(backend, module, devices, options, *rest)

    return compiled


compiler.backend_compile_and_load = with_other_emitters(
    compiler.backend_compile_and_load
)
# Where JAX's programs are written down: one place for many, not one for each.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)
jax.config.update("jax_num_cpu_devices", 2)  # as tests/conftest.py says of minijax

numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def compiled_programs_are_forgotten():
    """Let go of JAX's programs now and then; thousands of them fill gigabytes."""
    yield
    if next(numbers) % 100 == 0:
        jax.clear_caches()
        mlir.make_ir_context.cache_clear()
