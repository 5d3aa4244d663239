"""What all comparisons with JAX share.

Much of their time goes to XLA, which compiles thousands of programs that run once
each. So it compiles them quickly here, without the passes that make fast code; bits of
sums and of elementary functions may differ, which no comparison asks for.
`XLA_FLAGS= make oracle` compares with programs as XLA compiles them for users, from
which the tables are recorded.
"""

import itertools
import os

import pytest

QUICKLY = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
]
if os.environ.get("MINIJAX_ORACLE") != "record":
    os.environ.setdefault("XLA_FLAGS", " ".join(QUICKLY))

numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def compiled_programs_are_forgotten():
    """Let go of JAX's programs now and then; thousands of them fill gigabytes."""
    yield
    if next(numbers) % 100 == 0:
        import jax

        jax.clear_caches()
