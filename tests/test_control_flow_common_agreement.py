"""Messages about branches and carries that disagree, and weak first values."""

import numpy as np
import pytest

from minijax.arrays.array import ShapedArray, typeof
from minijax.control_flow.common import (
    check_branches,
    check_carry_type,
    promote_weak_typed_inputs,
)
from minijax.tree_util import tree_structure

F32, I32 = ShapedArray((), np.float32), ShapedArray((), np.int32)
WEAK = ShapedArray((), np.int32, True)


def result(tree, *avals):
    return tree_structure(tree), list(avals)


def message(check, *args):
    with pytest.raises(TypeError) as caught:
        check(*args)
    return str(caught.value)


def test_branches_that_agree():
    pair = result((0, 0), F32, I32)
    check_branches("cond", ["a", "b"], [pair, pair])
    check_branches("cond", ["a", "b"], [result(0, WEAK), result(0, I32)])
    check_branches("switch", ["a"], [pair])


def test_branches_that_do_not():
    said = message(
        check_branches,
        "switch",
        ["one", "two", "three"],
        [result({"k": (0, 0)}, F32, I32)] * 2 + [result({"k": (0, 0)}, I32, F32)],
    )
    assert "result['k'][0] is float32[] from one and int32[] from three" in said
    assert "result['k'][1]" in said
    said = message(check_branches, "cond", "ab", [result((0,), F32), result(0, F32)])
    assert "at result: expected a tuple, got an array" in said
    said = message(check_branches, "cond", "ab", [result(0, F32), result((0,), F32)])
    assert "expected a leaf, got a tuple" in said
    said = message(check_branches, "cond", "ab", [result(None), result(0, F32)])
    assert "expected a NoneType, got an array of type Array" in said


def step(state, x):
    return state


def test_carry_is_called_as_the_user_calls_it():
    one, two = result({"w": 0}, F32), result({"w": 0}, ShapedArray((2,), np.float32))
    said = message(check_carry_type, "scan", step, *one, *two)
    assert "state['w'] comes in as float32[] and goes out as float32[2]" in said
    said = message(check_carry_type, "scan", step, *one, *result({"v": 0}, F32))
    assert "at state" in said
    check_carry_type("scan", step, *one, *one)
    check_carry_type("scan", max, *result(0, F32), *result(0, F32))  # no signature


def test_weak_first_values():
    leaves, changed = promote_weak_typed_inputs(
        [1, 2.0], [typeof(1), typeof(2.0)], [F32, F32]
    )
    assert changed
    assert (leaves[0].dtype, leaves[1]) == (np.float32, 2.0)
    leaves, changed = promote_weak_typed_inputs([np.int32(1)], [I32], [F32])
    assert not changed
