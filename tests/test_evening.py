"""The default backend on the floors of the evening: without passes, vectors, matmul."""

import subprocess
import sys

SCRIPT = """
import sys
import numpy as np
from minijax import _lazy, _public

DEPTH = "passes elementary_functions vectorization matmul dispatch threads sorting"
DEPTH += " windows prng distributions spmd collectives distributed"
deep = tuple(f"minijax.{name}." for name in DEPTH.split())
deep += ("minijax.numpy.sorting", "minijax.numpy.ufunc_objects", "minijax.numpy.fft.")
deep += ("minijax.random.",)
_public.REGISTERS[:] = [name for name in _public.REGISTERS if not name.startswith(deep)]
import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax
from minijax.cpu_backend.backend import CPUProgram

def loss(w, x, y):
    residual = jnp.tanh(x @ w) - y
    return (residual * residual).sum()

def softmax(x):
    e = jnp.exp(x - x.max())
    return e / e.sum()

def scan(x):
    return lax.scan(lambda c, row: (0.5 * c + row, c.sum()), x[0], x)

w, x = np.array([0.5, -0.2, 0.1], "float32"), np.ones((8, 3), "float32")
x = x * np.arange(8, dtype="float32")[:, None]
y = np.ones(8, "float32")
programs = (loss, (w, x, y)), (grad(loss), (w, x, y)), (softmax, (w,)), (scan, (x,))
for f, args in programs:
    compiled = jit(f).lower(*args).compile()
    assert isinstance(compiled.runtime_executable(), CPUProgram)
    found, wanted = compiled(*args), jit(f, backend="interpreter")(*args)
    lists = [r if isinstance(r, tuple) else [r] for r in (found, wanted)]
    for ours, theirs in zip(*lists):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
print(*sorted({name for name in sys.modules if name.startswith(deep)}))
"""


def test_the_default_backend_of_the_evening():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == []
