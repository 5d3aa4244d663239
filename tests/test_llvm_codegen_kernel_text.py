"""Kernels in machine code leave what the interpreter leaves. Some run in a child."""

import re
import subprocess
import sys

import numpy as np
import pytest

from minijax.kernels.ir import Affine, Guard, Parameter, Store
from minijax.kernels.loop_nests import Kernel, fold_node, interpret, load_node, op_node
from minijax.llvm.codegen import emit_llvm
from minijax.llvm.compiler import Library
from minijax.llvm.targets import host_target, kernel_function
from minijax.threads.parallel_loops import parallel_loop, range_function
from tests.commands import LONG
from tests.kernel_cases import PlacesChance, alike, random_kernels
from tests.vector_cases import made_by_hand

F32 = np.dtype("float32")


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "11", "--count", "100" if LONG else "50"],
        ["--seed", "12", "--count", "200" if LONG else "100", "--places"],
        ["--programs", "--every", "40"],
    ],
)
def test_kernels_agree(options):
    command = [sys.executable, "-m", "tests.kernel_cases", *options]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-3000:]
    assert re.search(r"[1-9]\d* kernels, 0 differences", child.stdout)


def softmax(rows, columns):
    x, out = (Parameter(name, F32, rows * columns) for name in ("x", "out"))
    place = Affine(0, (columns, 1))
    a = load_node(x, place)
    b = fold_node("max", (1,), a)
    d = op_node("exp", c := op_node("sub", a, b))
    f = op_node("div", d, e := fold_node("add", (1,), d))
    stores = (Store(out, place, f),)
    return Kernel("softmax", (rows, columns), (x, out), (a, b, c, d, e, f), stores)


def run(kernel, **memory):
    """What machine code and what the interpreter leave in the last parameter."""
    function = Library(emit_llvm({"k": kernel})).function("k", len(kernel.parameters))
    again = {name: data.copy() for name, data in memory.items()}
    function(*[memory[parameter.name].ctypes.data for parameter in kernel.parameters])
    interpret(kernel, again)
    name = kernel.parameters[-1].name
    return memory[name], again[name]


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 7), (30, 70)])
def test_softmax(shape):
    x = np.random.default_rng(2).normal(size=shape).astype(F32).reshape(-1)
    ours, wanted = run(softmax(*shape), x=x, out=np.empty_like(x))
    assert alike(ours, wanted)
    np.testing.assert_allclose(ours.reshape(shape).sum(1), 1, rtol=1e-5)


def test_loops_without_turns():
    nothing = np.zeros(0, F32)
    run(softmax(3, 0), x=nothing, out=nothing.copy())
    run(softmax(0, 3), x=nothing, out=nothing.copy())
    assert "loop" not in emit_llvm({"softmax": softmax(0, 3)})


def test_loads_outside_read_nothing():
    """The parameter ends with a page that nobody may read, if the system is strict."""
    x, out = Parameter("x", F32, 4), Parameter("out", F32, 12)
    guards = [Guard(Affine(-4, (1,)), 4)]
    a = load_node(x, Affine(-4, (1,)), guards, -1)
    kernel = Kernel("pad", (12,), (x, out), (a,), (Store(out, Affine(0, (1,)), a),))
    x = np.arange(4, dtype=F32)
    ours, wanted = run(kernel, x=x, out=np.empty(12, F32))
    np.testing.assert_array_equal(ours, wanted)


def test_places_beyond_31_bits():
    """By addresses, not by memory: the last element of 2 ** 33 is the first we have."""
    size = 2**33
    x, out = Parameter("x", F32, size), Parameter("out", F32, 1)
    a = load_node(x, Affine(size - 1, (0,)))
    kernel = Kernel("last", (1,), (x, out), (a,), (Store(out, Affine(0, (0,)), a),))
    function = Library(emit_llvm({"k": kernel})).function("k", 2)
    memory, result = np.array([42], F32), np.zeros(1, F32)
    function(memory.ctypes.data - 4 * (size - 1), result.ctypes.data)
    assert result[0] == 42


def test_text():
    text = emit_llvm({"softmax": softmax(4, 5)})
    assert text.startswith("declare float @expf(float)\n\ndefine void @softmax(")
    assert text.count(" phi ") == 6 and text.count("@expf(") == 3
    assert text == emit_llvm({"softmax": softmax(4, 5)})


def test_no_value_or_block_is_called_as_a_parameter_may_be():
    kernels, target = [*made_by_hand()][::5], host_target()
    for chance in ({}, {"chance": PlacesChance}):
        kernels += [kernel for kernel, _ in random_kernels(5, 60, **chance)]
    names, given = set(), {x.name for kernel in kernels for x in kernel.parameters}
    for kernel in kernels:
        texts = [emit_llvm({"k": kernel}), kernel_function(kernel, "k", target).text]
        if parallel_loop(kernel, target):
            texts.append(range_function(kernel, "k", target, 1024).text)
        for text in texts:
            begin, body = text.partition("define void @k(")[2].split(" {\n", 1)
            body = body.partition("\n}")[0]
            parameters = {*re.findall(r"%(\w+)", begin)} & given
            names |= {*re.findall(r"%(\w+)\b(?!\.)", body)} - parameters
    plain = {re.sub(r"\d+$", "", name) for name in names}
    assert plain >= {"i", "loop", "done", "entry", "lo", "hi"}
    assert plain.isdisjoint(["x", "y", "z", "out", "partial", "stage", "carryx"])
    assert names.isdisjoint(given)


def test_helpers_of_halves_are_there_once():
    half = np.dtype("float16")
    x, out = Parameter("x", half, 4), Parameter("out", half, 4)
    a = load_node(x, Affine(0, (1,)))
    kernel = Kernel("copy", (4,), (x, out), (a,), (Store(out, Affine(0, (1,)), a),))
    text = emit_llvm({"one": kernel, "two": kernel})
    assert text.count("define internal float @from_f16") == 1
    assert "bf16" not in text
