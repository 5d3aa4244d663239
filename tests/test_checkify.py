"""Errors as values: which line failed, what is refused, what is kept."""

import pickle

import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, shard_map, vmap
from minijax.experimental import checkify
from minijax.experimental.checkify.checking import checkify_jaxpr


def log(x):
    checkify.check(x > 0, "{x} is not positive", x=x)
    return jnp.log(x)


def test_an_error_knows_the_line_that_failed():
    for errors in (checkify.user_checks, checkify.nan_checks):
        error, _ = checkify.checkify(jit(log), errors)(jnp.float32(-1))
        [note] = error.get_exception().__notes__
        assert "test_checkify.py" in note and "log" in note


def test_a_staged_check_is_refused_with_its_line():
    with pytest.raises(ValueError, match=r"not functionalized.*\n.*\(log\): checkify"):
        jit(log)(1.0 * jnp.ones(()))
    with pytest.raises(ValueError, match="not functionalized"):
        jit(log, backend="python")(1.0 * jnp.ones(()))


def test_the_text_of_a_check_hides_what_its_number_means():
    text = str(make_jaxpr(log)(jnp.float32(1)))
    assert "check[debug=False]" in text and "err_tree" not in text


def test_a_loop_is_checked_once_however_often_it_is_nested():
    def step(x, _):
        return jnp.log(x), None

    def nested(depth):
        if depth == 0:
            return step
        return lambda x, _: lax.scan(nested(depth - 1), x, None, length=2)

    closed = make_jaxpr(lambda x: nested(6)(x, None)[0])(2.0)
    found = checkify_jaxpr(closed, checkify.nan_checks)
    assert len(found.causes) == 1  # each program is interpreted once, and kept


def test_kinds_of_failures_differ_between_branches():
    def f(x):
        return lax.cond(x > 0, jnp.sqrt, lambda x: x / (x - x), x)

    checked = jit(checkify.checkify(f, checkify.float_checks))
    assert checked(jnp.float32(4))[0].get() is None
    assert checked(jnp.float32(-4))[0].get() == "division by zero"


def test_the_first_device_of_a_mesh_that_fails_is_reported():
    mesh = minijax.make_mesh((1,), ("i",))
    spec = minijax.P("i")
    for body, errors in ((log_of_all, checkify.user_checks), (jnp.log, NAN)):
        mapped = shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)
        for f in (mapped, jit(mapped)):
            checked = checkify.checkify(f, errors)
            error, result = checked(jnp.ones(2))
            assert error.get() is None and result.tolist() == [0, 0]
            assert checked(jnp.array([1.0, -1.0]))[0].get() is not None


NAN = checkify.nan_checks


def log_of_all(x):
    checkify.check((x > 0).all(), "{x} is the least", x=x.min())
    return jnp.log(x)


def test_an_error_is_a_tree_that_can_leave_a_program():
    error, _ = jit(vmap(checkify.checkify(log)))(jnp.array([1.0, -2.0]))
    same = minijax.tree.map(lambda x: x, error)
    assert (
        same.get()
        == error.get()
        == "at mapped index 1: -2.0 is not positive (`check` failed)"
    )
    leaves, tree = minijax.tree.flatten(error)
    assert [x.shape for x in leaves] == [(2,), (2,), (2,)]
    assert hash(tree) == hash(minijax.tree.structure(same))
    assert checkify.init_error.get() is None
    with pytest.raises(checkify.JaxRuntimeError) as caught:
        error.throw()
    assert pickle.loads(pickle.dumps(str(caught.value))) == str(caught.value)


def test_a_loop_of_unknown_length_is_checked_for_each_example():
    def until(x):
        return lax.while_loop(lambda i: i < 5, lambda i: log(x - i) * 0 + i + 1, 0.0)

    error, _ = vmap(checkify.checkify(until))(jnp.array([9.0, 3.0]))
    assert error.get() == "at mapped index 1: 0.0 is not positive (`check` failed)"
