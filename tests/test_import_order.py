"""What a program compiles to does not depend on which module is imported first."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from minijax.vectors.kernels import kernel_function
from minijax.vectors.targets import forced_target
from tests import mutants, vector_cases

ROOT, F32 = Path(__file__).resolve().parents[1], np.dtype("float32")
MAKE = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)

import numpy as np
from minijax.kernels.kernel import Affine, Buffer, Kernel, Store, apply, fold, load
from minijax.vectors.targets import forced_target
from minijax.vectors.kernels import kernel_function

x, out = (Buffer(name, np.dtype("float32"), 33 * 100) for name in ("x", "out"))
place = Affine(0, (100, 1))
a = load(x, place)
e = apply("exp", d := apply("sub", a, m := fold("max", (1,), a)))
r = apply("div", e, s := fold("add", (1,), e))
nodes, stores = (a, m, d, e, s, r), (Store(out, place, r),)
softmax = Kernel("softmax", (33, 100), (x, out), nodes, stores)
texts = [kernel_function(softmax, "k", forced_target("plain")).text]

import minijax
import minijax.numpy as jnp

def loss(w):
    return jnp.sum(jnp.tanh(w @ w.T) - jnp.max(w, axis=1))

with minijax.config.override("minijax_cpu", "plain"):
    lowered = minijax.jit(minijax.grad(loss)).lower(np.ones((40, 40)))
    texts.append(lowered.as_text("llvm"))

from tests import vector_cases

parts = vector_cases.parts(600, 500, np.dtype("float32"), along=0)
texts.append(kernel_function(parts, "k", forced_target("plain")).text)
print(json.dumps(texts))
"""
FIRST = (
    ["minijax.vectors.kernels"],
    ["minijax.vectors.streaming", "minijax.machine.backend"],
)


def texts(first):
    """A kernel and a gradient as LLVM is given them, after some imports."""
    command = [sys.executable, "-c", MAKE, *first]
    return json.loads(subprocess.check_output(command, cwd=ROOT))


def test_texts_are_the_same():
    assert len({json.dumps(texts(first)) for first in FIRST}) == 1


def test_another_order_is_seen():
    """The fault, brought back: a kernel with two sweeps becomes another text."""
    kernel, plain = vector_cases.parts(600, 500, F32, along=0), forced_target("plain")
    text = kernel_function(kernel, "k", plain).text
    with mutants.import_order():
        assert kernel_function(kernel, "k", plain).text != text
    assert kernel_function(kernel, "k", plain).text == text
