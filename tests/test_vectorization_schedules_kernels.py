"""Kernels with vectors leave what the interpreter leaves. They run in children."""

import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import enable_x64, jit, make_jaxpr
from minijax.elementary_functions import real_functions as elementary
from minijax.elementary_functions.scalar_functions import slow_paths
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.ir import Affine, FoldInit, Loop, Parameter, Store
from minijax.kernels.loop_nests import Kernel, load_node, op_node
from minijax.kernels.lowering import lower
from minijax.llvm.codegen import module_ir
from minijax.llvm.targets import (
    Target,
    TargetLibrary,
    forced_target,
    host_target,
    kernel_function,
    optimize_module,
)
from minijax.vectorization.row_schedules import RowLoad, RowStore, Stream
from minijax.vectorization.schedules import TransposeTile, schedule_nest
from minijax.vectorization.vector_functions import (
    function_name,
    function_texts,
    walk_nest,
)
from tests import commands
from tests import vector_cases as cases

F32 = np.dtype("float32")
ARM = Target("aarch64-unknown-linux-gnu", "generic", "", 16)
# Narrower ones than this machine's own; with `LONG=1` its own under that name as well.
KINDS = [
    kind
    for kind in ("plain", "avx2", "avx512")
    if forced_target(kind).vector_bytes < host_target().vector_bytes + commands.LONG
]


def check(*options):
    """Run the command of `vector_cases`; something must have been compared."""
    command = [sys.executable, "-m", "tests.vector_cases", *options]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-3000:]
    assert re.search(r"[1-9]\d* kernels, 0 differences", child.stdout)


@pytest.mark.parametrize("kind", ["", *KINDS])
def test_kernels_made_by_hand(kind):
    """Each for one kind of processor, by turns; `LONG=1`: each for all of them."""
    kinds = ["", *KINDS]
    first, every = (0, 1) if commands.LONG else (kinds.index(kind), len(kinds))
    share = ["--first", str(first), "--every", str(every)]
    check("--made", "--target", kind, *share)


@pytest.mark.parametrize("kind", ["", *KINDS])
def test_random_kernels(kind):
    count = ("30" if kind else "60") if commands.LONG else "20"
    check("--seed", "19", "--count", count, "--target", kind)


@pytest.mark.parametrize("options", [[], ["--fused"]])
def test_kernels_of_programs(options):
    check("--programs", "--every", "60", *options)


@pytest.mark.parametrize("kind", ["", "plain"])
def test_random_kernels_in_blocks(kind):
    count = "60" if commands.LONG else "30"
    check("--seed", "90", "--count", count, "--target", kind, "--blocks")


LONG = {
    "sum": lambda x: x.sum(),
    "mean of squares": lambda x: (x * x).mean(),
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "product with a vector": lambda x: x @ jnp.ones(x.shape[1]),
    "sum and largest": lambda x: x.sum() + x.max(),
    "variance": lambda x: (x + jnp.arange(x.shape[1]) % 2).var(1),
}


@pytest.mark.parametrize("shape", [(1000, 257), (7, 60_000), (60_000, 7), (4000, 40)])
@pytest.mark.parametrize("name", LONG)
def test_long_sums_keep_their_digits(name, shape):
    """Equal numbers are the hard case: all additions round the same way."""
    x = np.full(shape, 0.1, "float32")
    found = jit(LONG[name], backend="cpu")(x)
    with enable_x64():
        wanted = LONG[name](jnp.asarray(x.astype("float64")))
    assert np.allclose(found, wanted, rtol=3e-6, atol=0)


def test_every_way_is_tried():
    """Each kind of step occurs among the kernels made by hand."""
    seen = Counter()
    for kernel in cases.made_by_hand():
        for step in walk_nest(schedule_nest(kernel, host_target())):
            seen[type(step)] += 1
            seen.update(map(type, step.body if isinstance(step, TransposeTile) else ()))
    assert all(seen[kind] for kind in (Loop, Stream, TransposeTile, RowStore, RowLoad))


def text_of(kernel, target):
    return kernel_function(kernel, "k", target).text


def plus_one(size, dtype=F32):
    x, out = Parameter("x", dtype, size), Parameter("out", dtype, size)
    a = load_node(x, Affine(0, (1,)))
    b = op_node("add", a, a)
    return Kernel("twice", (size,), (x, out), (a, b), (Store(out, Affine(0, (1,)), b),))


@pytest.mark.parametrize(("kind", "lanes"), [("plain", 4), ("avx2", 8), ("avx512", 16)])
def test_width_follows_the_target(kind, lanes):
    text = text_of(plus_one(1000), forced_target(kind))
    assert f"fadd <{lanes} x float>" in text
    half = text_of(plus_one(1000, np.dtype("float64")), forced_target(kind))
    assert f"fadd <{lanes // 2} x double>" in half


def test_no_mask_where_all_vectors_are_full():
    target = forced_target("avx2")
    assert "masked" not in text_of(plus_one(64), target)
    assert "masked" in text_of(plus_one(65), target)
    assert "masked.store" not in text_of(plus_one(5), target)  # five lanes


def test_short_kernels_are_inlined():
    target = host_target()
    assert "alwaysinline" in text_of(plus_one(16), target)
    assert "noinline" in text_of(plus_one(17), target)


def test_expensive_numbers_are_computed_once():
    kernel = cases.row_program(30, 200, F32)
    text = text_of(kernel, host_target())
    full, last = text.count("call <16 x float> @exp"), text.count("@exp")
    assert last <= 2 and full <= 2  # a loop of full vectors, and the rest of a row


@pytest.mark.parametrize("kind", ["plain", "avx2", "avx512"])
@pytest.mark.parametrize(("dtype", "share"), [(F32, 2), (np.dtype("float64"), 1)])
def test_rows_that_fusion_calls_near_are_kept(kind, dtype, share):
    target = forced_target(kind)
    kernel = cases.row_program(2, share * target.cache_elements, dtype)
    steps = [*walk_nest(schedule_nest(kernel, target))]
    assert any(isinstance(step, RowStore) for step in steps)
    assert any(isinstance(step, RowLoad) for step in steps)


@pytest.mark.parametrize("kind", ["avx2", "avx512"])
@pytest.mark.parametrize("rows", [2, 4, 8, 10, 13, 16])
def test_sums_of_rows_side_by_side_are_short_as_texts(kind, rows):
    """The terms of 16 rows side by side are a loop, and not written out."""
    square = jnp.ones((rows, rows))
    program = lower(make_jaxpr(lambda x, y: x @ y)(square, square))
    [kernel] = program.kernels.values()
    assert text_of(kernel, forced_target(kind)).count("\n") < 500


@pytest.mark.parametrize("kind", ["plain", "avx2", "avx512"])
def test_many_cheap_operations_between_sweeps_are_not_all_done_again(kind):
    """Each mean is a sweep, and what comes before it is recalled: texts are linear."""

    def centred(times):
        def f(x):
            for _ in range(times):
                x = x * 1.5 - x.mean()
            return x

        fused = fuse(lower(make_jaxpr(f)(jnp.ones(100))), forced_target(kind))
        [kernel] = fused.kernels.values()
        return schedule_nest(kernel, forced_target(kind))

    few, many = ([*walk_nest(centred(times))] for times in (10, 20))
    assert sum(isinstance(step, RowStore) for step in many) >= 3
    assert len(many) < 2.4 * len(few)


def test_huge_rows_are_computed_again():
    steps = [*walk_nest(schedule_nest(cases.row_program(2, 10**6, F32), host_target()))]
    assert not any(isinstance(step, RowStore | RowLoad) for step in steps)


@pytest.mark.parametrize("along", [0, 1])
def test_folds_of_an_earlier_sweep_are_kept(along):
    """The sums of rows are computed in one sweep, and recalled by the next."""
    kernel = cases.parts(40, 50, F32, along)
    steps = [*walk_nest(schedule_nest(kernel, host_target()))]
    sums = [node for node in kernel.nodes if node.op == "fold"][:1]
    assert sum(isinstance(step, FoldInit) and step.fold in sums for step in steps) == 1
    assert sum(isinstance(step, RowStore) for step in steps) == 2
    assert sum(isinstance(step, RowLoad) for step in steps) == 2


def test_ends_of_rows_are_done_by_vectors():
    """Exponentials of sums of rows; not in large kernels, nor where rows are few."""
    for rows, lying in [(40, {1, 2}), (10, {2}), (10_000, {2})]:
        steps = walk_nest(schedule_nest(cases.ends(2, rows, 33, F32), host_target()))
        assert {s.axis for s in steps if isinstance(s, Loop) and s.lanes} == lying


def test_lanes_that_do_not_count_ask_for_nothing_rare():
    """The logarithm of 0 is rare; full vectors need no care."""
    rare, usual = (cases.function_row(75, op, F32) for op in ("log", "exp"))
    selects = [
        text_of(kernel, forced_target("plain")).count("select")
        for kernel in (rare, usual)
    ]
    assert selects == [1, 0]
    assert "select" not in text_of(
        cases.function_row(64, "log", F32), forced_target("plain")
    )


def test_text_is_the_same_each_time():
    for kernel in [cases.row_program(3, 70, F32), cases.turned(33, 70, F32)]:
        assert text_of(kernel, host_target()) == text_of(kernel, host_target())


def test_functions_are_shared():
    functions = [
        kernel_function(cases.function_row(n, "exp", F32), f"k{n}", host_target())
        for n in (100, 200)
    ]
    text = module_ir(functions)
    label = next(name for name in functions[0].needed if name.startswith("exp"))
    assert text.count(f"define internal <16 x float> @{label}(") <= 1
    TargetLibrary(text, host_target())


def test_kernels_for_an_arm_processor():
    """Vectors of 16 bytes; compiled to assembly where LLVM knows the processor."""
    from llvmlite import binding

    kernels = [cases.row_program(30, 70, F32), cases.turned(33, 70, F32), plus_one(101)]
    names = ["k0", "k1", "k2"]
    functions = [kernel_function(k, n, ARM) for k, n in zip(kernels, names)]
    assert "<4 x float>" in functions[2].text
    try:
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        binding.Target.from_triple(ARM.triple)
    except RuntimeError:
        pytest.skip("LLVM here does not know the processor")
    module, machine = optimize_module(binding, module_ir(functions), ARM)
    assert "v0.4s" in machine.emit_assembly(module)


@pytest.mark.parametrize("op", ["sin", "cos", "log"])
def test_what_is_rare_has_its_loop_in_a_function_of_its_own(op):
    """Callers contain the vector's function, and LLVM reads each copy of it."""
    function = elementary.scalar_function(op, F32)
    texts = function_texts(function, 16)
    label, paths = function_name(function, 16), slow_paths(function.rare)
    last = "_rare" * len(paths)
    for rarely in range(len(paths)):  # what is rare by vectors has no loop either
        assert "phi i64" not in texts[label + "_rare" * rarely]
    assert texts[label + last].count(f"@{function.label}{last}(") == 1
    nodes = sum(len(each.nodes) for each in (function, *paths))
    assert texts[function.label + last].count("\n") < nodes
