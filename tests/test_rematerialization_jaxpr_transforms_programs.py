"""Programs made from programs."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.batching.vmap import MappedAxis
from minijax.jaxprs.checker import check_jaxpr
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    convert_constvars_closed,
    dce_closed_jaxpr,
    jvp_jaxpr,
    merge_lists,
    partition_list,
    prune_inputs,
    scatter_by_mask,
    transpose_jaxpr,
)

V = np.float32([0.5, 1.0, 2.0])


def closed_of(f, *args):
    closed = minijax.make_jaxpr(f)(*args)
    check_jaxpr(closed)
    return closed


def run(closed, *args):
    check_jaxpr(closed)
    return list(map(np.asarray, jaxpr_as_fun(closed)(*args)))


def test_lists():
    mask, values = (True, False, True), [1, 2, 3]
    no, yes = partition_list(mask, values)
    assert (no, yes) == ([2], [1, 3])
    assert merge_lists(mask, no, yes) == values
    assert scatter_by_mask(mask, yes) == [1, None, 3]


def two(x, y):
    return jnp.sin(x) * y, y, jnp.argmax(x)


def test_jvp_program():
    closed = closed_of(two, V, V)
    program, moves = jvp_jaxpr(closed, (True, False))
    assert moves == (True, False, False)
    values = run(program, V, V, V)
    np.testing.assert_allclose(values[3], np.cos(V) * V * V, rtol=1e-6)
    assert jvp_jaxpr(closed, (True, False)) is jvp_jaxpr(closed, (True, False))


@pytest.mark.parametrize(
    ("instantiate", "moves"),
    [(True, (True, True, False)), ((False, True, True), (True, True, False))],
)
def test_jvp_program_writes_zeros_out(instantiate, moves):
    program, found = jvp_jaxpr(closed_of(two, V, V), (True, False), instantiate)
    assert found == moves
    np.testing.assert_array_equal(run(program, V, V, V)[4], np.zeros(3))


def test_vmap_program():
    closed, axis = closed_of(two, V, V), MappedAxis(None, 2)
    program, dims = batch_jaxpr(closed, axis, (1, None))
    both = np.stack([V, 2 * V], 1)
    outs = run(program, both, V)
    assert dims[1] is None
    expected = np.sin(both) * V[:, None]
    np.testing.assert_allclose(np.moveaxis(outs[0], dims[0], 1), expected, rtol=1e-6)


def test_vmap_program_to_front():
    closed, axis = closed_of(two, V, V), MappedAxis(None, 2)
    program, dims = batch_jaxpr(closed, axis, (1, None), True)
    assert dims == (0, 0, 0)
    assert [x.shape for x in run(program, np.stack([V, V], 1), V)] == [(2, 3)] * 2 + [
        (2,)
    ]
    program, dims = batch_jaxpr(closed, axis, (0, None), (True, False, True))
    assert dims == (0, None, 0)


def test_transpose_program():
    closed = closed_of(lambda a, x, y: (a * x, x + x), V, V, V)
    avals = tuple(closed.out_avals)
    program, arrives = transpose_jaxpr(closed, (False, True, True), avals)
    assert arrives == (True, False)
    [ct] = run(program, V, V, V)
    np.testing.assert_allclose(ct, V * V + 2 * V, rtol=1e-6)
    program, arrives = transpose_jaxpr(
        closed, (False, True, True), (closed.out_avals[0], None), True
    )
    assert arrives == (True, True)
    ct, zero = run(program, V, V)
    np.testing.assert_allclose(ct, V * V, rtol=1e-6)
    np.testing.assert_array_equal(zero, np.zeros(3))
    for flags in ((False, False), (True, False), (False, True)):
        _, arrives = transpose_jaxpr(
            closed, (False, True, True), (None, closed.out_avals[1]), flags
        )
        assert arrives == (True, flags[1])


def test_dce_program():
    def f(x, y, z):
        return jnp.sin(x), jnp.cos(y) * jnp.exp(x), z

    program, needed = dce_closed_jaxpr(closed_of(f, V, V, V), (True, False, False))
    assert [eqn.primitive.name for eqn in program.eqns] == ["sin"]
    assert needed == (True, False, False)
    smaller = prune_inputs(program, needed)
    assert len(smaller.invars) == 1
    np.testing.assert_allclose(run(smaller, V)[0], np.sin(V), rtol=1e-6)


def test_dce_looks_into_calls():
    g = minijax.jit(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    program, needed = dce_closed_jaxpr(
        closed_of(lambda x, y: g(x, y)[0], V, V), (True,)
    )
    [call] = program.eqns
    assert [eqn.primitive.name for eqn in call.params["jaxpr"].eqns] == ["sin"]
    assert needed == (True, False)
    np.testing.assert_allclose(run(program, V, V)[0], np.sin(V), rtol=1e-6)


def test_constants_become_inputs():
    table = jnp.asarray(V)
    closed = closed_of(lambda x: x * table, V)
    program = convert_constvars_closed(closed)
    assert not program.consts
    np.testing.assert_array_equal(run(program, V, V)[0], V * V)
    assert convert_constvars_closed(closed) is program
