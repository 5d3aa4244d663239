"""The checker of loops: what passes make is fine, and what is broken is refused."""

import dataclasses

import numpy as np
import pytest

from minijax.kernels.checker import NestError, check_nest, step_checks
from minijax.kernels.ir import FoldCombine, FoldInit, Loop, Store
from minijax.kernels.loop_nests import loop_nest
from minijax.llvm.codegen import step_emitters
from minijax.llvm.targets import forced_target
from minijax.vectorization.row_schedules import RowLoad, RowStore
from minijax.vectorization.schedules import SCHEDULE_PASSES, schedule_nest
from minijax.vectorization.vector_functions import walk_nest
from tests import kernel_cases, nest_mutants
from tests import vector_cases as cases
from tests.commands import blocks

F32, F64 = np.dtype("float32"), np.dtype("float64")
TARGETS = [forced_target(name) for name in ("plain", "avx2", "avx512")]
KERNELS = [
    cases.row_program(3, 70, F32),
    cases.row_program(300, 700, F64),
    cases.turned(33, 70, F32),
    cases.parts(600, 500, F32, along=0),
    cases.parts(600, 500, F32, along=1),
    cases.ends(2, 40, 33, F32),
    cases.function_row(75, "log", F32),
]


def check_each_pass(kernel, target):
    """Check a nest after each pass; return the last."""
    steps = check_nest(kernel, loop_nest(kernel))
    for change in SCHEDULE_PASSES:
        steps = check_nest(kernel, change(kernel, steps, target))
    return steps


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.cpu)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.label)
def test_what_passes_make_is_fine(kernel, target):
    check_each_pass(kernel, target)


@pytest.mark.parametrize("seed", range(10))
def test_random_kernels(seed):
    chance = kernel_cases.Chance, kernel_cases.PlacesChance
    for kernel, *_ in kernel_cases.random_kernels(seed, 15, chance[seed % 2]):
        for target in TARGETS:
            check_each_pass(kernel, target)


@pytest.mark.parametrize("number", blocks(8, 40))
def test_mutants_are_refused_or_right(number):
    """What the checker accepts can be written, and does what the kernel says."""
    wrong, counts = nest_mutants.problems(range(60 * number, 60 * number + 60))
    assert not wrong
    assert counts["refused"] > 15


def test_rows_have_a_place_for_each_number():
    """A row of fewer axes is refused: several turns would put numbers in one place."""
    kernel = KERNELS[1]
    steps = schedule_nest(kernel, TARGETS[2])
    check_nest(kernel, steps)
    found = 0
    for step in walk_nest(steps):
        found += isinstance(step, RowStore)
    assert found
    with pytest.raises(NestError, match="one place for several"):
        check_nest(kernel, without_axes(steps))


def without_axes(steps):
    """Return a nest whose rows have no axes."""
    return [
        step._replace(body=without_axes(step.body))
        if isinstance(step, Loop)
        else step._replace(row=step.row._replace(axes=()))
        if isinstance(step, RowStore | RowLoad)
        else step
        for step in steps
    ]


def test_what_can_be_written_can_be_checked():
    """A step of a nest has a writer and a check, whichever floor it comes from."""
    assert {*step_emitters} == {*step_checks}


def without_one(steps):
    """Yield nests in which one step that matters is missing, and that step."""
    for place, step in enumerate(steps):
        before, after = steps[:place], steps[place + 1 :]
        if not isinstance(step, FoldInit) and getattr(step, "op", "") != "constant":
            yield [*before, *after], step
        if isinstance(step, Loop):
            for body, gone in without_one(step.body):
                yield [*before, step._replace(body=body), *after], gone


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.label)
@pytest.mark.parametrize("passes", [(), SCHEDULE_PASSES], ids=["plain", "scheduled"])
def test_no_step_may_be_missing(kernel, passes):
    found = 0
    for steps, gone in without_one(schedule_nest(kernel, TARGETS[1], passes)):
        with pytest.raises(NestError):
            pytest.fail(f"{gone} is missing") if check_nest(kernel, steps) else None
        found += 1
    assert found > 2


def twice(steps):
    """Return a nest in which the last store is done twice."""
    return _last(steps, lambda step: isinstance(step, Store), lambda step: [step, step])


def _last(steps, wanted, change):
    """Return steps with the last one of a kind changed, in the innermost loop."""
    for place in reversed(range(len(steps))):
        step = steps[place]
        before, after = steps[:place], steps[place + 1 :]
        if isinstance(step, Loop):
            body = _last(step.body, wanted, change)
            if body is not step.body:
                return [*before, step._replace(body=body), *after]
        if wanted(step):
            return [*before, *change(step), *after]
    return steps


def _is_store(step):
    return isinstance(step, Store)


def beside(store):
    """Return a store, and one beside it that the kernel does not have."""
    further = store.place._replace(offset=store.place.offset + 1)
    return [store, store._replace(place=further)]


def _is_inner(step):
    return isinstance(step, Loop) and bool(step.folds)


def of_kind(loop, kind, count=0):
    """Return a loop of another kind."""
    return loop._replace(kind=kind, count=count)


BROKEN = {
    "a store done twice": ("not done once", twice),
    "no outer loop": (
        "does not move",
        lambda steps: [*steps[0].body] if isinstance(steps[0], Loop) else steps[::-1],
    ),
    "a loop in a loop along the same axis": (
        "moves already",
        lambda s: _last(s, _is_inner, lambda loop: [loop._replace(body=[loop])]),
    ),
    "a fold that its loop does not carry": (
        "do not carry it",
        lambda s: _last(s, _is_inner, lambda loop: [loop._replace(folds=())]),
    ),
    "a loop that is written out, with lanes": (
        "its kind and its count",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "unrolled", 2)]),
    ),
    "fewer than no lanes": (
        "its kind and its count",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "vector", -2)]),
    ),
    "vectors of nothing": (
        "its kind and its count",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "vector")]),
    ),
    "a loop of no kind": (
        "no loop of its kind",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "vectors", 2)]),
    ),
    "a team in a vector": (
        "has no team",
        lambda s: [
            of_kind(s[0], "vector", 2)._replace(
                body=_last(s[0].body, _is_inner, lambda o: [of_kind(o, "team", 4)])
            )
        ],
    ),
    "an inner loop in parts": (
        "only an outermost loop",
        lambda s: _last(s, _is_inner, lambda o: [o._replace(parallel=True)]),
    ),
    "a number that enters twice": (
        "twice",
        lambda s: _last(
            s, _is_inner, lambda o: [o._replace(body=o.body + o.body[-1:])]
        ),
    ),
    "a fold that is listed twice": (
        "a fold is there twice",
        lambda s: _last(s, _is_inner, lambda o: [o._replace(folds=o.folds * 2)]),
    ),
    "another store besides": ("no such store", lambda s: _last(s, _is_store, beside)),
    "vectors in vectors": (
        "along another axis",
        lambda s: [
            of_kind(s[0], "vector", 2)._replace(
                body=_last(s[0].body, _is_inner, lambda o: [of_kind(o, "vector", 2)]),
            )
        ],
    ),
    "more lanes than indices": (
        "more lanes",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "vector", 128)]),
    ),
    "a fold side by side": (
        "depend on others",
        lambda s: _last(s, _is_inner, lambda o: [of_kind(o, "together", 2)]),
    ),
    "a node before its operand": (
        "missing",
        lambda s: _last(
            s, _is_inner, lambda loop: [loop._replace(body=loop.body[::-1])]
        ),
    ),
    "a fold that is no loop": (
        "needs a loop",
        lambda s: _last(
            s, _is_inner, lambda o: [o._replace(body=[*o.body, o.folds[0]])]
        ),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_nests_are_refused(name):
    complaint, change = BROKEN[name]
    kernel = KERNELS[0]
    steps = loop_nest(kernel)
    assert check_nest(kernel, steps) is steps
    with pytest.raises(NestError, match=complaint):
        check_nest(kernel, change(steps))


SPREAD, TOTALS = cases.spread(4, 20, F32, "add"), cases.totals(4, 20, "add", F32)
APART = cases.spread(4, 20, F32, "add", distinct=True)


def marked(axis, **marks):
    """Return a change of nests: marks of the loop along an axis."""

    def change(steps):
        return [
            step._replace(body=change(step.body), **marks if step.axis == axis else {})
            if isinstance(step, Loop)
            else step
            for step in steps
        ]

    return change


def swapped(steps):
    """Exchange the outer loop and the loop in it, and compute all in this."""
    [outer] = steps
    *before, inner = outer.body
    body = [*before, *inner.body]
    return [inner._replace(body=[outer._replace(body=body)])]


def without_node(op):
    """Return a change of nests: the last node of an operation is left out."""

    def ours(step):
        return getattr(step, "op", "") == op

    return lambda steps: _last(steps, ours, lambda step: [])


def combined_in(steps):
    """Put a loop along an axis of size 1 around what enters a fold that runs."""

    def combines(step):
        return isinstance(step, FoldCombine) and step.fold.op == "running"

    return _last(steps, combines, lambda step: [Loop(2, [step], ())])


TWO, MASKED = {"kind": "vector", "count": 2}, {"kind": "masked", "count": 2}
AT_PLACES = {
    "lanes that may meet": ("two lanes may meet", SPREAD, marked(0, **TWO)),
    "threads that may meet": ("two threads may meet", SPREAD, marked(0, parallel=True)),
    "rows in the wrong order": ("another order", SPREAD, swapped),
    "a place before its number": ("number is missing", SPREAD, without_node("convert")),
    "an update done twice": ("not done once", SPREAD, twice),
    "masks without lanes": ("its kind and its count", APART, marked(1, kind="masked")),
    "masks of places": ("a mask is not", APART, marked(1, **MASKED)),
    "masks of a fold": ("a mask is not", TOTALS, marked(0, **MASKED)),
    "lanes along a running fold": ("has no lanes", TOTALS, marked(1, **TWO)),
    "threads along a running fold": ("outermost", TOTALS, marked(1, parallel=True)),
    "a running fold without its loop": ("carry it", TOTALS, marked(1, folds=())),
    "a running fold in another loop": ("another loop", TOTALS, combined_in),
}


@pytest.mark.parametrize("name", AT_PLACES)
def test_broken_nests_at_computed_places_are_refused(name):
    complaint, kernel, change = AT_PLACES[name]
    steps = loop_nest(kernel)
    assert check_nest(kernel, steps) is steps
    wide = dataclasses.replace(kernel, sizes=(*kernel.sizes, 1))
    with pytest.raises(NestError, match=complaint):
        check_nest(wide, change(steps))


@pytest.mark.parametrize("marks", [TWO, {"parallel": True}])
def test_distinct_places_may_be_stored_at_once(marks):
    for axis in (0, 1) if "kind" in marks else (0,):
        check_nest(APART, marked(axis, **marks)(loop_nest(APART)))
    check_nest(SPREAD, marked(1, kind="vector", count=4)(loop_nest(SPREAD)))


def test_a_complaint_names_the_step_and_the_kernel():
    kernel = KERNELS[0]
    with pytest.raises(
        NestError, match=r"(?s)out\[.*in the loops of\n\n" + kernel.name
    ):
        check_nest(kernel, twice(loop_nest(kernel)))
