"""What a loop of a kind may hold: `loop_complaint` says why not, of a loop alone."""

import numpy as np
import pytest

from minijax.kernels.builder import loop_complaint
from minijax.kernels.ir import loop_kinds
from minijax.kernels.loop_nests import loop_nest
from tests import vector_cases as cases

F32 = np.dtype("float32")
KERNELS = {
    "copy": cases.turned(33, 70, F32),
    "sums": cases.column_folds(300, 100, "add", F32),
    "running": cases.totals(4, 20, "add", F32),
    "scattered": cases.spread(4, 20, F32, "add"),
}


def loops(name):
    """The loops of a kernel's nest, from the outermost inwards."""
    found, steps = [], loop_nest(KERNELS[name])
    while steps := [step for step in steps if hasattr(step, "body")]:
        found.append(steps[0])
        steps = steps[0].body
    return found


def of_kind(loop, kind):
    """A loop of another kind, four indices at a time where it has a count."""
    return loop._replace(kind=kind, count=4 * ("{}" in loop_kinds[kind]))


def in_strips(loop):
    """A loop in strips of four."""
    return of_kind(loop._replace(body=[loop], folds=()), "strip")


REFUSED = {
    "a count that the kind lacks": (loops("copy")[0]._replace(count=4), "its count"),
    "a kind of no table": (loops("copy")[0]._replace(kind="odd"), "no loop of its"),
    "a fold side by side": (of_kind(loops("sums")[1], "together"), "depend on others"),
    "a sum begun in each strip": (in_strips(loops("sums")[1]), "begin anew"),
    "strips in strips": (in_strips(in_strips(loops("copy")[0])), "strips are no loops"),
    "totals in lanes": (of_kind(loops("running")[1], "vector"), "has no lanes"),
    "places that meet": (of_kind(loops("scattered")[0], "vector"), "may meet"),
    "a mask for a sum": (of_kind(loops("sums")[1], "masked"), "mask is not enough"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_of_the_wrong_kind_is_refused(name):
    loop, words = REFUSED[name]
    assert words in loop_complaint(loop)


@pytest.mark.parametrize("kind", loop_kinds)
def test_a_loop_whose_indices_need_nothing_of_each_other_is_of_any_kind(kind):
    loop = loops("copy")[0]
    made = in_strips(loop) if kind == "strip" else of_kind(loop, kind)
    if kind != "masked":  # whose inner loop is no load, store or operation
        assert loop_complaint(made) is None


def test_a_fold_may_be_shared_by_lanes_and_by_teams():
    for kind in ("serial", "unrolled", "vector", "team"):
        assert loop_complaint(of_kind(loops("sums")[1], kind)) is None
