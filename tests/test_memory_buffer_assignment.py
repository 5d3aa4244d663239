"""The text of a plan, and its sums of bytes."""

import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.kernels.lowering import lower
from minijax.memory.aliasing import BufferLocation
from minijax.memory.buffer_assignment import memory_stats, plan_memory


def test_text():
    program = lower(make_jaxpr(lambda x: jnp.sin(jnp.exp(x) * x) + x)(jnp.ones(100)))
    assert (
        str(plan_memory(program))
        == """\
0 bytes in the arena
m0:f32[100]  input 0   before to step 3
m1:f32[100]  output 0  step 0 to step 1
m2:f32[100]  output 0  step 1 to step 2  over m1
m3:f32[100]  output 0  step 2 to step 3  over m2
m4:f32[100]  output 0  step 3 to after   over m3"""
    )


def test_dialect():
    f = jit(lambda x, y: (x - y) * 2.0, donate_argnums=0)
    text = f.lower(jnp.ones(9), jnp.ones(9)).as_text("memory")
    assert text.splitlines()[-1].endswith("input 0  step 0 to after   over m0")
    assert str(BufferLocation("arena", 64)) == "arena 64"


def test_sums():
    x = jnp.ones(1000)
    program = lower(make_jaxpr(lambda x, y: (x - (s := x.sum()), s))(x, x))
    stats = memory_stats(plan_memory(program, (True, False)), b"code")
    assert stats.argument_size_in_bytes == 8000 and stats.output_size_in_bytes == 4004
    assert stats.alias_size_in_bytes == 4000 and stats.generated_code_size_in_bytes == 4
    assert stats.temp_size_in_bytes == 0
    assert stats.peak_memory_in_bytes == 8000 + 4


def test_memory_analysis_of_a_compiled_function():
    f = jit(lambda w, g: w - 0.1 * jnp.sin(g), donate_argnums=0, backend="planned")
    stats = f.lower(jnp.ones(500), jnp.ones(500)).compile().memory_analysis()
    assert stats.alias_size_in_bytes == stats.output_size_in_bytes == 2000


def test_programs_in_steps_are_shown():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: jnp.sin(jnp.exp(c) * c), x)

    text = jit(f).lower(jnp.ones(50)).as_text("memory")
    assert text.count("bytes in the arena") >= 1
