"""Sums that run while the program computes: schedules, and the same numbers."""

import random

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import P, grad, lax, make_jaxpr, make_mesh, shard_map
from minijax.collectives.all_reduce import BucketedAllReduce, Collective
from minijax.cpu_backend.program_codegen import step_passes
from minijax.distributed import latency_hiding as schedules
from minijax.distributed.latency_hiding import (
    AllReduceDone,
    AllReduceStart,
    check_schedule,
    overlap_collectives,
    step_dependencies,
)
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import Launch, jaxpr_passes, lower

WS, X = [np.full((8, 8), 0.1 * (i + 1), "f4") for i in range(4)], np.ones((4, 8), "f4")


def loss(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w)
    return (x**2).sum()


def train(ws, x):
    slopes = lax.psum(grad(loss)(ws, x), "i")
    return [w - 0.1 * slope for w, slope in zip(ws, slopes)]


def lowered(f, *args):
    closed = make_jaxpr(f, axis_env=[("i", 2)])(*args)
    return fuse(lower(jaxpr_passes.value(closed)))


def kinds(program):
    return [type(step) for step in program.steps]


@pytest.fixture(params=[1, 300, 2**20])
def bucket(request, monkeypatch):
    monkeypatch.setattr(schedules, "BUCKET", request.param)
    return request.param


def test_sums_begin_before_the_backward_pass_is_over(bucket):
    program = lowered(train, WS, X)
    assert AllReduceStart not in kinds(program)
    early = overlap_collectives(program)
    check_schedule(early.steps)
    parts = [len(s.parts) for s in early.steps if type(s) is AllReduceStart]
    alone = [len(s.parts) for s in early.steps if type(s) is BucketedAllReduce]
    expected = {1: ([1, 1, 1, 1], []), 300: ([2, 2], []), 2**20: ([], [4])}
    assert (parts, alone) == expected[bucket]
    if parts:
        first, last = (kinds(early).index(k) for k in (AllReduceStart, AllReduceDone))
        between = [kind for kind in kinds(early)[first:last] if kind is Launch]
        assert len(between) >= 3 - bucket // 300
        assert "  begin m" in str(early) and "  end m" in str(early)


def test_sums_of_other_dtypes_and_folds_have_their_own_buckets():
    def f(x):
        large = lax.pmax(x * 2, "i"), lax.psum((x + 1, x.astype("float16")), "i")
        return large, lax.psum(x.sum(), "i")

    early = overlap_collectives(lowered(f, X))
    found = [str(step) for step in early.steps if "along i" in str(step)]
    sums = [line for line in found if "add" in line]
    assert len(found) == 3 and len(sums) == 2
    assert sum("m4:f32" in line or line.count(":f32") == 4 for line in sums) == 1


def test_a_sum_that_is_needed_at_once_stays_one_step():
    early = overlap_collectives(
        lowered(lambda x: jnp.sin(lax.psum(jnp.cos(x), "i")), X)
    )
    assert Collective in kinds(early) and AllReduceStart not in kinds(early)


def test_programs_that_stay_as_they_are():
    def told(x):
        minijax.debug.print("{}", x[0, 0])
        return lax.psum(x, "i")

    for f in (told, lambda x: jnp.sin(x).sum()):
        program = lowered(f, X)
        assert overlap_collectives(program) is program


def random_program(draw, depth):
    """Return a function of two arrays with sums, maxima and shifts in any order."""
    operations = [
        (draw.choice(("psum", "pmax", "sin", "mul", "add", "dot", "turn", "all")),
         draw.randrange(99), draw.randrange(99))
        for _ in range(depth)
    ]  # fmt: skip

    def program(x, y):
        values = [x, y]
        for name, i, j in operations:
            a, b = values[i % len(values)], values[j % len(values)]
            new = {
                "psum": lambda a, b: lax.psum(a, "i") * 0.5,
                "pmax": lambda a, b: lax.pmax(a, "i") - b,
                "sin": lambda a, b: jnp.sin(a),
                "mul": lambda a, b: a * b,
                "add": lambda a, b: a + b,
                "dot": lambda a, b: jnp.tanh(a @ b),
                "turn": lambda a, b: lax.ppermute(a, "i", [(0, 1), (1, 0)]),
                "all": lambda a, b: lax.all_gather(b, "i").sum(0),
            }[name](a, b)
            values.append(new)
        return values[2:]

    return program


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_keep_their_dependences_and_numbers(seed, monkeypatch):
    draw = random.Random(seed)
    program = random_program(draw, 14)
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 8, 4)).astype("f4")
    before = lowered(program, x[:4], y[:4])
    monkeypatch.setattr(schedules, "BUCKET", draw.choice((1, 100, 2**20)))
    check_schedule(overlap_collectives(before).steps)

    def results():
        run = shard_map(
            lambda x, y: program(x, y), mesh=make_mesh((2,), ("i",)),
            in_specs=P("i"), out_specs=P("i"), check_vma=False,
        )  # fmt: skip
        return list(map(np.asarray, run(x, y)))

    expected = results()
    with monkeypatch.context() as patch:
        patch.setattr(step_passes, "value", overlap_collectives)
        found = results()
    for mine, theirs in zip(found, expected):
        np.testing.assert_array_equal(mine, theirs)


def test_the_checker_finds_wrong_schedules(monkeypatch):
    monkeypatch.setattr(schedules, "BUCKET", 1)
    steps = overlap_collectives(lowered(train, WS, X)).steps
    begins = [i for i, step in enumerate(steps) if type(step) is AllReduceStart]
    ends = [i for i, step in enumerate(steps) if type(step) is AllReduceDone]

    def moved(source, target):
        rest = steps[:source] + steps[source + 1 :]
        return rest[:target] + [steps[source]] + rest[target:]

    for wrong in (
        moved(ends[0], ends[0] + 1),
        moved(ends[0], ends[1]),
        moved(begins[0], len(steps) - 1),
        steps[: ends[-1]] + steps[ends[-1] + 1 :],
    ):
        with pytest.raises(ValueError, match="A step uses|not the first|Nothing waits"):
            check_schedule(wrong)


def test_dependences():
    program = lowered(train, WS, X)
    needs = step_dependencies(program.steps)
    for number, before in enumerate(needs):
        assert all(other < number for other in before)
    first = next(
        i for i, kind in enumerate(kinds(program)) if kind is BucketedAllReduce
    )
    assert all(first in before for before in needs[first + 1 :])
