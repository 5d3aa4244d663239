"""Where arguments and results of jitted functions are to be, and types that say it."""

import copy
import pickle

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, grad, jit, lax, linearize, vmap
from minijax.arrays.devices import NO_MANUAL_AXES
from minijax.jaxprs.checker import check_jaxpr
from minijax.jitting.compilation import (
    UNSPECIFIED,
    check_shardings,
    device_constraints,
    requested_devices,
    with_single_device,
)
from minijax.jitting.primitive import jit_p
from minijax.sharding import ManualAxisType, SingleDeviceSharding

FIRST, SECOND = minijax.devices()
HERE, THERE = map(SingleDeviceSharding, (FIRST, SECOND))
BACKENDS = "interpreter", "python", "kernels", "cpu"


def twice(x):
    return x * 2


@pytest.fixture(params=BACKENDS)
def backend(request):
    with minijax.config.override("minijax_backend", request.param):
        yield request.param


def at(x):
    return x.device, x.committed


def test_arguments_are_brought(backend):
    f = jit(twice, in_shardings=THERE)
    x = jnp.arange(3.0)
    placed = [minijax.device_put(x, device) for device in (FIRST, SECOND)]
    kinds = x, *placed, np.ones(3), 2
    for _ in range(3):
        for argument in kinds:
            assert at(f(argument)) == (SECOND, True)
            np.testing.assert_array_equal(f(argument), np.asarray(argument) * 2)
    assert f._cache_size() == len(kinds) - 1  # NumPy's array, and one of its type


def test_results_are_put(backend):
    f = jit(lambda x: (x, {"y": x + 1}), out_shardings=(None, {"y": THERE}))
    for result in minijax.tree.leaves(f(jnp.arange(3.0))):
        assert at(result) == (SECOND, True)
    with pytest.raises(ValueError, match="argument x of <lambda> with .* and explicit"):
        f(minijax.device_put(jnp.arange(3.0), FIRST))


def test_calls_by_many_warmed_arguments():
    """The fast path of machine code does not answer calls that it should not."""
    f, x = jit(twice, in_shardings=THERE), jnp.arange(3.0)
    there = minijax.device_put(x, SECOND)
    for _ in range(150):
        assert at(f(x)) == at(f(there)) == (SECOND, True)
    with minijax.default_device(SECOND):
        assert at(f(x)) == at(f(np.ones(3, "float32"))) == (SECOND, True)


def test_a_decorator_and_its_copy():
    f = jit(in_shardings=THERE, out_shardings=THERE)(twice)
    for g in (f, copy.copy(f), pickle.loads(pickle.dumps(f))):
        assert at(g(1.0)) == (SECOND, True)


def test_gradients_of_calls_that_give_memory_away():
    f = jit(lambda x, y: jnp.sin(x) * y, donate_argnums=0, in_shardings=THERE)
    x = jnp.arange(3.0)
    for result in minijax.grad(lambda *a: f(*a).sum(), (0, 1))(x, x):
        assert at(result) == (SECOND, True)
    assert not x.is_deleted()


def test_a_function_without_arguments_by_name_only():
    f = jit(twice, in_shardings=THERE)
    with pytest.raises(ValueError, match="does not support kwargs when in_shardings"):
        f(x=1.0)
    assert at(jit(twice, in_shardings=None)(x=1.0))[1] is False


@pytest.mark.parametrize("option", ["in_shardings", "out_shardings"])
@pytest.mark.parametrize("bad", [SECOND, "cpu", 3, (THERE, SECOND), {"x": 1}], ids=str)
def test_what_is_no_sharding(option, bad):
    with pytest.raises(TypeError, match=f"{option} leaf specifications .*SingleDev"):
        jit(twice, **{option: bad})


def test_no_prefix():
    for bad in ((THERE, THERE), {"x": THERE}, ()):
        with pytest.raises(
            ValueError, match="in_shardings specification must be a tree prefix"
        ):
            jit(twice, in_shardings=bad)(1.0)
        with pytest.raises(
            ValueError, match="out_shardings specification must be a tree prefix"
        ):
            jit(twice, out_shardings=bad)(1.0)


def test_two_ways_to_say_it():
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match=f"backend or device .* then {option}"):
            jit(twice, backend="cpu", **{option: THERE})


def test_the_device_of_a_call():
    assert check_shardings("in_shardings", (None, THERE)) == (UNSPECIFIED, THERE)
    assert repr(UNSPECIFIED) == "UnspecifiedValue"
    assert pickle.loads(pickle.dumps(UNSPECIFIED)) is UNSPECIFIED
    params = {"name": "f", "in_shardings": (UNSPECIFIED, THERE)}
    assert [*requested_devices(params)] == [SECOND]
    assert with_single_device(params) == {"name": "f", "device": SECOND}
    assert with_single_device({"name": "f"}) == {"name": "f"}
    inner = jit(twice, out_shardings=THERE)
    closed = minijax.make_jaxpr(lambda x: lax.cond(True, inner, twice, x))(1.0)
    assert device_constraints(closed) == [("jit inside jit", SECOND.committed)]


def test_transformed_calls_name_their_device():
    f = jit(lambda x: jnp.sin(x), in_shardings=THERE)
    x = jnp.arange(3.0)
    ways = minijax.grad(lambda x: f(x).sum()), lambda x: minijax.jvp(f, (x,), (x,))
    eqns = [eqn for g in ways for eqn in minijax.make_jaxpr(g)(x).eqns]
    calls = [eqn for eqn in eqns if eqn.primitive is jit_p]
    assert calls and all(eqn.params["device"] is SECOND for eqn in calls)


def test_loops_run_where_calls_inside_ask(backend):
    inner, x = jit(twice, in_shardings=THERE), jnp.arange(3.0)
    results = [
        lax.scan(lambda c, row: (inner(c) + row, c), 0.0, x),
        lax.while_loop(lambda c: c[1] < 9, inner, x + 1), lax.map(inner, x),
        lax.cond(True, inner, twice, x), lax.fori_loop(0, 2, lambda i, c: inner(c), x),
    ]  # fmt: skip
    for result in minijax.tree.leaves(results):
        assert at(result) == (SECOND, True)
    with pytest.raises(ValueError, match="an argument of scan with .* jit inside jit"):
        lax.scan(lambda c, row: (inner(c), row), minijax.device_put(1.0, FIRST), x)


def test_structs_say_where_a_function_is_to_run():
    struct = ShapeDtypeStruct((3,), "float32", sharding=THERE, weak_type=True)
    assert repr(struct) == (
        "ShapeDtypeStruct(shape=(3,), dtype=float32, sharding=SingleDeviceSharding("
        "device=CpuDevice(id=1), memory_kind=device), weak_type=True)"
    )
    for same in (copy.deepcopy(struct), pickle.loads(pickle.dumps(struct))):
        assert same == struct and hash(same) == hash(struct)
    assert struct != struct.update(sharding=HERE) != struct.update(sharding=None)
    assert at(jit(twice).lower(struct).compile()(jnp.ones(3))) == (SECOND, True)
    with pytest.raises(RuntimeError, match="Cannot reassign attributes .shape. of im"):
        struct.shape = ()
    there = minijax.device_put(jnp.ones(3), SECOND)
    assert ShapeDtypeStruct.like(there) == struct.update(weak_type=False)
    assert ShapeDtypeStruct.like(2.0) == ShapeDtypeStruct((), "float32", weak_type=True)
    assert ShapeDtypeStruct.like(np.ones(2)) == ShapeDtypeStruct((2,), "float32")
    assert ShapeDtypeStruct.like(struct) is struct


@pytest.mark.parametrize(
    "trace", [jit, grad, vmap, lambda f: lambda x: linearize(f, x)]
)
def test_the_type_of_a_tracer(trace):
    kept = []
    trace(lambda x: (kept.append(ShapeDtypeStruct.like(x)), x.sum())[1])(jnp.ones(2))
    shape = () if trace is vmap else (2,)
    assert kept[0] == ShapeDtypeStruct(shape, "float32")
    assert minijax.eval_shape(jit(twice, out_shardings=THERE), 1.0).sharding == THERE


def test_axes_of_a_mesh():
    some = ManualAxisType(varying={"j", "i"}, unreduced={"k"})
    assert str(some) == "{V:(i,j), U:k}" and not some.empty and NO_MANUAL_AXES.empty
    assert some.without(["i"]) is ManualAxisType(varying={"j"}, unreduced={"k"})
    assert pickle.loads(pickle.dumps(some)) is copy.deepcopy(some) is some
    with pytest.raises(ValueError, match="varying and unreduced cannot have common"):
        ManualAxisType(varying={"i"}, unreduced={"i"})
    aval = minijax.typeof(jnp.ones((2, 3))).update(manual_axis_type=some)
    assert str(aval) == "float32[2,3]{V:(i,j), U:k}" != repr(aval)
    assert aval.mat is some and aval != minijax.typeof(jnp.ones((2, 3)))
    assert pickle.loads(pickle.dumps(aval)) == aval
    assert aval.update(shape=(3,)).mat is some


def test_types_carry_the_axes_along_which_values_vary():
    axes = ManualAxisType(varying={"i"})
    x = ShapeDtypeStruct((3,), "float32", manual_axis_type=axes)

    def f(x):
        total = lax.psum(x, "i")
        loop = lax.scan(lambda c, row: (c + row, c), x[0], x)
        rows = minijax.vmap(lambda row: row * 2.0)(x)
        slopes = minijax.grad(lambda x: (jnp.sin(x) * x).sum())(x)
        return total, loop, rows, slopes, jit(twice)(x), jnp.ones(3) + x, jnp.ones(2)

    jaxpr, shapes = minijax.make_jaxpr(f, axis_env=[("i", 2)], return_shape=True)(x)
    found = [aval.mat for aval in jaxpr.out_avals]
    assert found == [NO_MANUAL_AXES] + [axes] * 6 + [NO_MANUAL_AXES]
    assert str(jaxpr).startswith("{ lambda ; a:f32[3]{V:i}. let")
    assert [x.manual_axis_type for x in minijax.tree.leaves(shapes)][:2] == [None, axes]
    check_jaxpr(jaxpr)
