"""Programs with other inputs and results."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.arrays.array import ShapedArray
from minijax.batching.vmap import MappedAxis
from minijax.control_flow.common import (
    agreed,
    batch_jaxpr_axes,
    closed_jaxpr_with_io,
    forwarded_inputs,
    join_branch_consts,
    move_bdim,
    zeros_of_aval,
)
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jitting.compilation import trace_call
from minijax.pytrees.api_util import FlatCall

closed = make_jaxpr(lambda x, y: (x - y, x, jnp.sin(y)))(1.0, 2.0)


def test_other_places():
    extra = ShapedArray((3,), np.float32)
    program = closed_jaxpr_with_io(closed, [1, extra, 0], [2, 0])
    check_jaxpr(program)
    out = jaxpr_as_fun(program)(2.0, jnp.ones(3), 1.0)
    np.testing.assert_allclose(out, [np.sin(2.0), -1.0], rtol=1e-6)


def test_the_same_places_give_the_same_program():
    assert closed_jaxpr_with_io(closed, [0, 1]) is closed
    assert closed_jaxpr_with_io(closed, [1, 0]) is closed_jaxpr_with_io(closed, [1, 0])


@pytest.mark.parametrize("place", [0, 1])
def test_axes_in_their_places(place):
    f = make_jaxpr(lambda x, y: (x * y, y))(jnp.ones(2), 1.0)
    program = batch_jaxpr_axes(f, MappedAxis(None, 3), (1, None), (place, 0))
    check_jaxpr(program)
    x = jnp.arange(6.0).reshape(2, 3)
    product, y = jaxpr_as_fun(program)(x, 2.0)
    np.testing.assert_array_equal(product, np.moveaxis(2 * np.asarray(x), 1, place))
    np.testing.assert_array_equal(y, [2, 2, 2])


def test_no_axis():
    assert move_bdim(1.0, None, None, 3) == 1.0


def test_programs_share_what_they_have_captured():
    x, y = jnp.ones(3), jnp.arange(3.0)
    functions = [lambda z: x * z, lambda z: y + x - z, lambda z: z]
    calls = [FlatCall("f", f, (jnp.full(3, 2.0),)) for f in functions]
    programs, captured = join_branch_consts([trace_call(c, hoist=True) for c in calls])
    assert [id(value) for value in captured] == [id(x), id(y)]
    for program, f in zip(programs, functions):
        check_jaxpr(program)
        [out] = jaxpr_as_fun(program)(x, y, calls[0].leaves[0])
        np.testing.assert_array_equal(out, f(calls[0].leaves[0]))


def test_results_that_are_inputs():
    assert forwarded_inputs(closed) == [None, 0, None]
    assert agreed((1, 1)) == 1
    assert agreed((0, 1)) is None
    assert agreed((None, None)) is None


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("weak", [True, False])
def test_zeros_have_the_type(shape, weak):
    aval = ShapedArray(shape, np.float32, weak)
    program = make_jaxpr(lambda: zeros_of_aval(aval))()
    [found] = program.out_avals
    assert (found.shape, found.dtype, found.weak_type) == (shape, np.float32, weak)
    np.testing.assert_array_equal(jaxpr_as_fun(program)()[0], np.zeros(shape))
