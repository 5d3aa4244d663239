"""Fused programs: how many kernels are left, and that they compute the same."""

import sys
from typing import NamedTuple

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import (
    ShapeDtypeStruct,
    enable_x64,
    grad,
    jit,
    lax,
    make_jaxpr,
    pure_callback,
    value_and_grad,
)
from minijax.cpu_backend.program_codegen import unalias_outputs
from minijax.fusion.fusion_pass import FusionPass, buffer_uses, check_fusion, fuse
from minijax.fusion.merging import FusedKernelBuilder
from minijax.kernels.checker import check_kernel
from minijax.kernels.ir import Loop, bytes_accessed
from minijax.kernels.loop_nests import loop_nest
from minijax.kernels.lowering import (
    Evaluate,
    KernelProgram,
    Launch,
    LoweredProgram,
    lower,
)
from minijax.llvm.targets import TARGETS, current_target
from minijax.passes.pipeline import simplify
from tests import fusion_cases
from tests.fusion_cases import FusedProgram, compare

X = jnp.asarray(np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))
LARGE = jnp.ones((200, 300))


def lowered(f, *args):
    """The program of a function before fusion."""
    return lower(simplify(make_jaxpr(f)(*args)))


def fused(f, *args):
    """The checked fused program of a function."""
    program = lowered(f, *args)
    check_fusion(FusionPass(program, current_target()))
    program = fuse(program)
    for kernel in program.kernels.values():
        check_kernel(kernel)
    return program


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logsumexp(x):
    top = x.max(-1, keepdims=True)
    return jnp.log(jnp.exp(x - top).sum(-1)) + top[..., 0]


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def cross_entropy(x, y):
    return (logsumexp(x) - (x * y).sum(-1)).mean()


def column_norm(x):
    return (x - x.mean(0)) / x.std(0)


def adam(p, g):
    m, v = 0.9 * p + 0.1 * g, 0.99 * p + 0.01 * g * g
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def gates(z, c):
    a, b = jnp.split(z, 2, 1)
    return jnp.tanh(a) * c + b


def shifted(x):
    e = jnp.exp(x.reshape(-1))
    return e[1:] - e[:-1]


@pytest.mark.parametrize(
    "f, args, count",
    [
        (lambda x: x, [X], 0),
        (selu, [X], 1),
        (grad(lambda x: selu(x).sum()), [X], 1),
        (lambda x: selu(x).T, [X], 1),
        (lambda x: selu(x.T).reshape(12)[::-3] + 1, [X], 1),
        (lambda x: selu(x.T).reshape(12)[::-2] + 1, [X], 2),
        (lambda x: jnp.pad(selu(x), 1) * 2, [X], 1),
        (softmax, [LARGE], 1),
        (softmax, [LARGE.reshape(2, 30_000)], 1),
        (softmax, [jnp.zeros((2, 40_000))], 3),
        (grad(lambda x: (softmax(x) * x).sum()), [LARGE], 1),
        (layer_norm, [LARGE], 1),
        (grad(lambda x: (layer_norm(x) * x).sum()), [LARGE], 1),
        (logsumexp, [LARGE], 1),
        (value_and_grad(cross_entropy), [LARGE, LARGE], 1),
        (column_norm, [X], 1),
        (column_norm, [LARGE], 2),
        (lambda x: jnp.exp(x).sum(0), [LARGE], 1),
        (lambda x: (x.sum(0), x.sum(1)), [X], 2),
        (lambda x: (x.sum(1), (x * x).max(1)), [LARGE], 1),
        (lambda x: (x * x).sum() + x.max(), [LARGE], 1),
        (lambda x: ((x * x).sum(), 2 * x), [LARGE], 1),
        (lambda x: x / x.sum(), [LARGE], 2),
        (lambda x: x / x.sum(), [X], 1),
        (lambda x: x + x.T, [X[:, :3]], 1),
        (lambda x: softmax(x + x.T), [LARGE[:200, :200]], 2),
        (lambda a, b: (jnp.cos(a) * b, jnp.sin(a)), [LARGE, LARGE], 1),
        (adam, [LARGE, LARGE], 1),
        (gates, [LARGE, LARGE[:, :150]], 1),
        (shifted, [X], 1),
        (shifted, [LARGE], 2),
        (lambda x, b: x + jnp.exp(b), [LARGE, LARGE[0]], 2),
        (lambda x, b: x + jnp.exp(b), [X, X[0]], 1),
        (lambda x, b: x + jnp.exp(b)[:, None], [LARGE, LARGE[:, 0]], 1),
        (lambda x: lax.argmax(jnp.abs(x), 1, "int32"), [X], 1),
        (lambda x: lax.argmax(jnp.exp(x).T, 0, "int32").sum(), [X], 1),
    ],
)
def test_numbers_of_kernels(f, args, count):
    assert len(fused(f, *args).steps) == count


def test_a_row_is_read_from_memory_once():
    [step] = fused(softmax, LARGE).steps
    assert bytes_accessed(step.kernel) == (4 * LARGE.size,) * 2
    assert sum(node.op == "load" for node in step.kernel.nodes) == 1
    assert sum(node.op == "exp" for node in step.kernel.nodes) == 1


@pytest.mark.parametrize("dtype, bits", [("float32", 32), ("float64", 64)])
def test_rows_just_near_enough(dtype, bits):
    near = 64 * current_target().cache_elements // bits
    with enable_x64():
        for size, count in ((near, 1), (near + 1, 3)):
            x = jnp.ones((2, size), dtype)
            assert len(fused(softmax, x).steps) == count


def test_a_step_waits_for_the_last_writer_alone():
    program = lowered(lambda x: jnp.concatenate([x * k for k in range(200)]), X[0])
    assert sum(map(len, buffer_uses(program).predecessors)) <= 2 * len(program.steps)


@pytest.mark.parametrize("of", [lambda x, k: x, lambda x, k: x * k])
def test_what_is_fused_is_copied_a_few_times(of, monkeypatch):
    count, take = 0, FusedKernelBuilder.take

    def counted(part, other, maps=None):
        nonlocal count
        count += len(other.nodes) + len(other.made)
        return take(part, other, maps)

    program = lowered(lambda x: [of(x, k) for k in range(400)], X[0])
    if not program.steps:  # each result is an argument: the machine copies it
        program = unalias_outputs(program)
    monkeypatch.setattr(FusedKernelBuilder, "take", counted)
    fuse(program)
    assert count < 10 * len(program.steps)


def test_sums_of_one_row_share_a_loop():
    [step] = fused(lambda x: (x.sum(1), (x * x).sum(1)), LARGE).steps
    [rows] = loop_nest(step.kernel)
    [columns] = [step for step in rows.body if isinstance(step, Loop)]
    assert len(columns.folds) == 2


def chain(x):
    for _ in range(500):
        x = x * 1.01 + 0.5
    return x


def test_kernels_stay_small():
    steps = fused(chain, X).steps
    assert 7 <= len(steps) <= 8
    assert all(len(step.kernel.nodes) < 400 for step in steps)


def calls_for_each_operation(n):
    """How many functions are called to lower and fuse a chain, by its operations."""

    def long_chain(x):
        for _ in range(n // 2):
            x = jnp.tanh(x) + x
        return x

    closed, calls = simplify(make_jaxpr(long_chain)(X)), []
    sys.setprofile(lambda frame, event, arg: calls.append(event))
    try:
        fuse(lower(closed))
    finally:
        sys.setprofile(None)
    return len(calls) / n


def test_the_work_grows_with_the_program_and_no_faster():
    short, long = calls_for_each_operation(300), calls_for_each_operation(3000)
    assert long < 1.1 * short


def test_nothing_is_stored_that_nobody_reads():
    def f(x):
        return jnp.exp(x), jnp.log(jnp.exp(x) + 1.0)

    program = fused(f, X)
    written = [buffer for step in program.steps for buffer in step.writes]
    assert set(written) == set(program.outputs) and len(written) == 2


def test_waste_vanishes():
    program = lower(make_jaxpr(lambda x: (jnp.exp(x), jnp.sin(x)))(X))
    program = program._replace(outputs=program.outputs[:1])
    [step] = fuse(program).steps
    assert step.kernel.name == "exp"


def tricky(x):
    a = jnp.exp(x)
    b = pure_callback(np.cumsum, ShapeDtypeStruct((12,), "float32"), a.reshape(12))
    return a * 2.0 + b.reshape(3, 4)


def test_a_step_in_between_is_not_passed():
    program = LoweredProgram(*lower(make_jaxpr(tricky)(X)))
    waiting, *steps = program.steps
    known = {*program.inputs, *waiting.writes}
    for step in fuse(program).steps:
        assert known.issuperset(step.reads)
        known.update(step.writes)
    assert not compare(make_jaxpr(tricky)(X), [X])[0]


def pieces(x):
    return jnp.concatenate([jnp.sin(x[2:]) * 2, x[:2]])[::-1] + 1


def gaps(x):
    return lax.pad(jnp.exp(x), 1.0, ((1, 0, 1), (0, 2, 0))) * 2


@pytest.mark.parametrize(
    "f",
    [
        pieces,
        gaps,
        tricky,
        shifted,
        lambda x: (x, jnp.exp(x), x.T),
        lambda x: lax.bitcast_convert_type(x * x + 1, "int32") >> 2,
        lambda x: (x + 1j * jnp.exp(x)) * (x - 2j),
        lambda x: (x.astype("float16") * 3 + 1).astype("float32") * x,
        lambda x: (x.astype("bfloat16") * 3 + 1).sum(1),
        lambda x: jnp.pad(jnp.pad(jnp.exp(x), 1), ((2, 0), (0, 1))) + 1,
        lambda x: jnp.pad(x.sum(1), 2)[:, None] * x[0],
        lambda x: (x @ x.T).max(0) + jnp.exp(x[:, 0]),
        lambda x: jnp.exp(x[:0]).sum(0) + x[0],
        lambda x: x[::-1, ::-1].reshape(12) * x.T.reshape(12),
    ],
)
def test_results(f):
    wrong, _ = compare(make_jaxpr(f)(X), [X], machine=True)
    assert not wrong, wrong[0]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed):
    for program in fusion_cases.random_programs(seed, 40):
        wrong, _ = compare(*program, machine=seed == 0)
        assert not wrong, f"{program[0]}\n{wrong[0]}"


@pytest.mark.filterwarnings("ignore")
def test_corpus():
    steps = np.zeros(2, int)
    for closed, operands in fusion_cases.corpus_programs(every=9):
        wrong, found = compare(closed, operands)
        steps += found
        assert not wrong, f"{closed}\n{wrong[0]}"
    assert steps[1] < steps[0] / 2


@pytest.mark.filterwarnings("ignore")
def test_primitives():
    for closed, operands in fusion_cases.primitive_programs(every=11):
        wrong, _ = compare(closed, operands)
        assert not wrong, f"{closed}\n{wrong[0]}"


class Twice(NamedTuple):
    """A step that contains a program."""

    program: LoweredProgram

    reads = writes = ()

    @property
    def programs(self):
        return (self.program,)

    def with_programs(self, programs):
        return Twice(*programs)


def test_programs_within_steps():
    inner = lower(make_jaxpr(selu)(X))
    [step] = fuse(LoweredProgram([], [], [], [Twice(inner)])).steps
    assert len(inner.steps) == 6 and len(step.program.steps) == 1


def test_other_steps_stay_in_order():
    def f(x):
        for _ in range(3):
            x = tricky(jnp.sin(x)) + 1.0
        return x

    program = lower(make_jaxpr(f)(X))
    steps = [step for step in fuse(program).steps if not isinstance(step, Launch)]
    assert steps == [step for step in program.steps if isinstance(step, Evaluate)]
    assert not compare(make_jaxpr(f)(X), [X])[0]


def test_fused_program_is_called_often():
    program, plain = (
        kind(make_jaxpr(softmax)(X)) for kind in (FusedProgram, KernelProgram)
    )
    for scale in (1.0, 2.0):
        [ours], [wanted] = program(X * scale), plain(X * scale)
        assert np.allclose(ours, wanted)


def test_the_program_and_the_target_decide_and_nothing_else():
    program = lower(make_jaxpr(shifted)(LARGE))
    before = str(program)
    texts = {str(fuse(program, target)) for target in [*TARGETS.values()] * 2}
    assert str(program) == before and len(texts) == 2
    near_by, far_away = (fuse(program, TARGETS[name]) for name in ("avx2", "gpu"))
    assert len(near_by.steps) == 2 and len(far_away.steps) == 1


def test_a_fusion_prints_its_kernels():
    program = lower(simplify(make_jaxpr(column_norm)(LARGE)))
    text = str(FusionPass(program, current_target()))
    assert text.count(" for i < ") == 2 and "for i < 300, j < 200" in text


def broken_part(**more):
    """A change of the only part of a fusion."""

    def change(fusion):
        [part] = fusion.groups.values()
        vars(part).update(more)

    return change


@pytest.mark.parametrize(
    "change, wrong",
    [
        (broken_part(axis_orders=frozenset({(1, 0)})), "wrong order"),
        (lambda fusion: fusion.position.__setitem__(1, -1), "wrong order"),
        (lambda fusion: fusion.group_steps[1].remove(1), "in no part"),
        (lambda fusion: fusion.groups.clear(), "in no part"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, wrong):
    def f(x):
        return softmax(pure_callback(np.sin, ShapeDtypeStruct((3, 4), "float32"), x))

    fusion = FusionPass(lower(make_jaxpr(f)(X)), current_target())
    assert [*fusion.groups] == [1]
    check_fusion(fusion)
    change(fusion)
    with pytest.raises(ValueError, match=wrong):
        check_fusion(fusion)


def test_what_is_made_again_is_stored_where_its_index_cannot_be_told():
    """A mask of a triangle, which two kernels make again, reads an index by rows."""
    at, measured = jnp.array([0.1, 0.5, 0.7, 1.3]), jnp.ones((4, 1))

    def surprise(width):
        apart = (at[:, None] - at) / width
        factor = lax.linalg.cholesky(jnp.exp(-apart * apart) + 0.1 * jnp.eye(4))
        x = lax.linalg.triangular_solve(factor, measured, left_side=True, lower=True)
        return (x * x).sum() / 2 + jnp.log(jnp.diagonal(factor)).sum()

    curvature = grad(grad(surprise))
    assert np.allclose(jit(curvature)(0.8), curvature(0.8), rtol=1e-3)
