"""Programs with other inputs and results."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.arrays.avals import ShapedArray
from minijax.batching.trace import MappedAxis
from minijax.branches.rewiring import place_axis, rewired, settle, vmap_program_at
from minijax.jaxprs.checking import check_jaxpr
from minijax.jaxprs.jaxpr import jaxpr_as_fun

closed = make_jaxpr(lambda x, y: (x - y, x, jnp.sin(y)))(1.0, 2.0)


def test_other_places():
    extra = ShapedArray((3,), np.float32)
    program = rewired(closed, [1, extra, 0], [2, 0])
    check_jaxpr(program)
    out = jaxpr_as_fun(program)(2.0, jnp.ones(3), 1.0)
    np.testing.assert_allclose(out, [np.sin(2.0), -1.0], rtol=1e-6)


def test_the_same_places_give_the_same_program():
    assert rewired(closed, [0, 1]) is closed
    assert rewired(closed, [1, 0]) is rewired(closed, [1, 0])


@pytest.mark.parametrize("place", [0, 1])
def test_axes_in_their_places(place):
    f = make_jaxpr(lambda x, y: (x * y, y))(jnp.ones(2), 1.0)
    program = vmap_program_at(f, MappedAxis(None, 3), (1, None), (place, 0))
    check_jaxpr(program)
    x = jnp.arange(6.0).reshape(2, 3)
    product, y = jaxpr_as_fun(program)(x, 2.0)
    np.testing.assert_array_equal(product, np.moveaxis(2 * np.asarray(x), 1, place))
    np.testing.assert_array_equal(y, [2, 2, 2])


def test_no_axis():
    assert place_axis(1.0, None, None, 3) == 1.0


def test_flags_settle():
    edges = {0: [1], 1: [2], 2: [], 3: [0]}

    def step(flags):
        reached = {j for i, on in enumerate(flags) if on for j in edges[i]}
        return tuple(i in reached for i in range(len(flags)))

    assert settle(step, (True, False, False, False)) == (True, True, True, False)
    assert settle(step, (False,) * 4) == (False,) * 4
    assert settle(lambda flags: (), ()) == ()
