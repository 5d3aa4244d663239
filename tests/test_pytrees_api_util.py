"""A user's function on trees, seen as a function on a flat list."""

import functools

import numpy as np
import pytest

from minijax.pytrees.api_util import FlatCall, argument_names, flatten_like
from minijax.pytrees.argument_checks import resolve_argnums
from minijax.pytrees.tree_operations import flatten_axes
from minijax.tree_util import tree_structure


def loss(params, x, *rest, scale=1.0):
    """A function of trees that returns its arguments."""
    return {"params": params, "rest": [x, *rest], "scale": scale}


PARAMS = {"w": [1.0, 2.0], "b": (3.0, None)}


def test_a_call_in_flat_form():
    call = FlatCall("test", loss, (PARAMS, 4.0, 5.0), {"scale": 6.0})
    assert call.leaves == [3.0, 1.0, 2.0, 4.0, 5.0, 6.0]
    assert [str(aval) for aval in call.avals] == ["~float32[]"] * 6
    outs = call(*[10 * x for x in call.leaves])
    assert outs == [30.0, 10.0, 20.0, 40.0, 50.0, 60.0] and call.num_outs == 6
    assert call.output([0] * 6) == loss({"w": [0, 0], "b": (0, None)}, 0, 0, scale=0)
    assert call.args_tree == tree_structure((PARAMS, 4.0, 5.0))
    assert call.in_tree == tree_structure(((PARAMS, 4.0, 5.0), {"scale": 6.0}))


def test_only_some_arguments_vary():
    fixed = object()
    call = FlatCall(
        "test",
        lambda a, b, c, k: [a, c, k, b is fixed],
        (1.0, fixed, (2.0,)),
        argnums=(-1, 0),
        constants={"k": 7.0},
    )
    assert call.argnums == (2, 0) and call.leaves == [2.0, 1.0]
    assert call.names() == ["c[0]", "a"]
    assert call(20.0, 10.0) == [10.0, 20.0, 7.0, True]
    assert call.args_tree.unflatten("xy") == (("x",), "y")


def test_other_data_stands_at_the_end_and_may_be_anything():
    call = FlatCall("test", lambda x: ([x, x], {"note": "hi"}), (1.0,), has_aux=True)
    flat = call(2.0)
    assert flat == [2.0, 2.0, "hi"] and call.num_outs == 2
    assert call.output(flat) == [2.0, 2.0] and call.aux(flat) == {"note": "hi"}


def test_names_of_outputs():
    call = FlatCall("test", loss, (PARAMS, 4.0))
    call(*call.leaves)
    assert call.out_name(0) == "['params']['b'][0]"
    assert call.out_name(call.num_outs - 1) == "['scale']"


def test_abstract_values_may_come_from_elsewhere():
    call = FlatCall("test", loss, ("text", 1.0), typeof=type)
    assert call.avals == [str, float]


def test_name_of_the_function():
    named = functools.partial(loss, scale=2.0)
    assert FlatCall("test", named, (1.0, 2.0)).fun_name == "loss"
    assert FlatCall("test", Callable(), (1.0,)).fun_name == "Callable"


class Callable:
    """An object that can be called."""

    def __call__(self, x, /, y=0):
        return x


NAMES = [
    (
        loss,
        (PARAMS, 1),
        {},
        ["params['b'][0]", "params['w'][0]", "params['w'][1]", "x"],
    ),
    (loss, (1, 2, [3], 4), {}, ["params", "x", "rest[0][0]", "rest[1]"]),
    (loss, (1, 2), {"scale": {"s": 1}}, ["params", "x", "scale['s']"]),
    (lambda *xs, **ks: 0, (1, 2), {"b": 1, "a": 1}, ["xs[0]", "xs[1]", "a", "b"]),
    (functools.partial(loss, 0), (1,), {}, ["x"]),
    (Callable(), (1, 2), {}, ["x", "y"]),
    (max, (1, (2,)), {}, ["args[0]", "args[1][0]"]),
    (lambda x: x, (1, 2, 3), {}, ["x", "args[0]", "args[1]"]),
]


@pytest.mark.parametrize(("fun", "args", "kwargs", "names"), NAMES)
def test_names_of_arguments(fun, args, kwargs, names):
    assert argument_names(fun, args, kwargs) == names


ARGNUMS = [(0, (0,)), (-1, (2,)), ((0, 2), (0, 2)), ([1, -3], (1, 0)), (True, (1,))]


@pytest.mark.parametrize(("argnums", "positions"), [*ARGNUMS, ((), ())])
def test_argnums(argnums, positions):
    assert resolve_argnums("grad", argnums, 3) == positions
    assert resolve_argnums("grad", np.int64(1), 3) == (1,)


AXES = [
    (0, ({"a": 1, "b": 2}, 3), [0, 0, 0]),
    (None, (1, 2), [None, None]),
    ((0, None), ((1, 2), {"a": 3}), [0, 0, None]),
    (({"a": 1, "b": None},), ({"a": 1, "b": [2, 3]},), [1, None, None]),
    ((0, 1), (None, 2), [1]),
    ((0, [1, (None, 2)]), (1, [1, (2, (3, 4))]), [0, 1, None, 2, 2]),
]


@pytest.mark.parametrize(("axes", "tree", "expected"), AXES)
def test_axes_spread_over_leaves(axes, tree, expected):
    assert flatten_axes("vmap in_axes", axes, tree) == expected
    assert flatten_axes("vmap in_axes", axes, tree_structure(tree)) == expected


def test_leaves_of_a_tree_like_another():
    treedef = tree_structure(PARAMS)
    assert flatten_like(treedef, PARAMS, "tangents", "primals") == [3.0, 1.0, 2.0]


SHORT = ({"a": 1.0, "b": 2.0},)
ERRORS = [
    (lambda: FlatCall("jvp", 3, ()), TypeError, "callable value, got 3"),
    (
        lambda: FlatCall("jvp", loss, ({"w": [1.0, "s"]}, 1.0)),
        TypeError,
        r"jvp .* loss .* params\['w'\]\[1\] is of type str",
    ),
    (
        lambda: FlatCall("jvp", max, (object(),)),
        TypeError,
        r"max .* args\[0\] .* object",
    ),
    (
        lambda: FlatCall("vmap", lambda x: {"a": [x, "s"]}, (1.0,))(1.0),
        TypeError,
        r"vmap .* returned a value of type str at result\['a'\]\[1\]",
    ),
    (
        lambda: FlatCall("grad", lambda x: x, (1.0,), has_aux=True)(1.0),
        TypeError,
        "pair .* 1.0 of type float",
    ),
    (
        lambda: FlatCall("grad", lambda x: (x, 1, 2), (1.0,), has_aux=True)(1.0),
        TypeError,
        "pair .* of type tuple",
    ),
    (lambda: resolve_argnums("grad", 2, 2), TypeError, "at least 3 .* only 2"),
    (lambda: resolve_argnums("grad", (0, 2), 2), TypeError, r"argnums=\(0, 2\)"),
    (
        lambda: resolve_argnums("jacfwd", 2, 2, ValueError),
        ValueError,
        "jacfwd: .* at least 3 .* only 2",
    ),
    (lambda: resolve_argnums("grad", 0, 0), TypeError, "at least 1 .* only 0"),
    (lambda: resolve_argnums("grad", -3, 2), ValueError, "no argument -3"),
    (lambda: resolve_argnums("grad", (0, -2), 2), ValueError, "twice"),
    (lambda: resolve_argnums("grad", "a", 2), TypeError, "integer .* got 'a'"),
    (lambda: resolve_argnums("grad", 1.5, 2), TypeError, "integer .* got 1.5"),
    (
        lambda: flatten_axes("vmap in_axes", ({"a": 0},), SHORT),
        ValueError,
        r"in_axes\[0\]: expected a dict with \('a',\), got one with \('a', 'b'\)",
    ),
    (
        lambda: flatten_axes("vmap in_axes", ((0, 1),), (1.0,)),
        ValueError,
        r"in_axes\[0\]: expected a tuple, got 1.0 of type float",
    ),
    (
        lambda: flatten_axes("vmap out_axes", (0,), tree_structure((1, 2))),
        ValueError,
        "vmap out_axes .* length 1, got length 2",
    ),
    (
        lambda: flatten_axes("vmap out_axes", (0,), tree_structure(1)),
        ValueError,
        "expected a tuple, got an array",
    ),
    (
        lambda: flatten_like(tree_structure([1, 2]), [1, (2,)], "tangents", "primals"),
        ValueError,
        r"tangents\[1\]: expected a leaf, got a tuple",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors_say_where_and_what(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()
