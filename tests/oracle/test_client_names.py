"""Names and arguments that packages ask for, beside JAX."""

import importlib

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

from .raised import raised  # noqa: E402


def same_leaves(ours, theirs):
    ours, theirs = (list(map(np.asarray, jax.tree.leaves(t))) for t in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs):
        assert (mine.shape, mine.dtype) == (its.shape, its.dtype)
        np.testing.assert_array_equal(mine, its)


def on_both(run):
    """Compare what a function of the package returns, as leaves of trees."""
    return same_leaves(run(minijax), run(jax))


# jnp.delete at places that are traced.


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize(
    ("axis", "places"),
    [(None, [3, 1]), (2, [3, 0]), (1, [-1]), (0, [0, 1]), (None, []), (2, [[0], [2]])],
)
def test_distinct_places_of_delete_may_be_traced(dtype, axis, places):
    x, places = np.arange(24.0).reshape(2, 3, 4), np.asarray(places, dtype)

    def run(j):
        def fun(x, i):
            return j.numpy.delete(x, i, axis, assume_unique_indices=True)

        both = fun(x, places), j.jit(fun)(x, places)
        return *both, j.grad(lambda x: (fun(x, places) ** 2).sum())(np.float32(x))

    on_both(run)


def test_places_of_delete_that_are_not_called_distinct_must_be_known():
    def run(j):
        return j.jit(j.numpy.delete)(j.numpy.arange(4), j.numpy.array([1]))

    assert raised(lambda: run(minijax))[0] == raised(lambda: run(jax))[0]


def module(j, path):
    return importlib.import_module(f"{j.__name__}.{path}")


# Small modules.


@pytest.mark.parametrize(
    ("path", "apart"),
    [
        ("monitoring", ""),
        ("ffi", ""),
        ("experimental.layout", ""),
        ("version", "annotations datetime os pathlib subprocess"),  # what it imports
        ("lib", ""),
    ],
)
def test_a_small_module_has_jax_s_names(path, apart):
    ours, theirs = module(minijax, path), module(jax, path)
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert {name for name in public if not hasattr(ours, name)} == {*apart.split()}
    assert hasattr(ours, "__version__") == hasattr(theirs, "__version__")


def heard(j):
    """What listeners hear of events, and what is said of one that is not there."""
    told, m = [], module(j, "monitoring")

    def listen(*args, **kwargs):
        told.append((args, kwargs))

    m.register_event_listener(listen)
    m.register_event_duration_secs_listener(listen)
    m.register_event_time_span_listener(listen)
    m.register_scalar_listener(listen)
    m.record_event("/a", size=3)
    m.record_event_duration_secs("/b", 0.5)
    m.record_event_time_span("/c", 1.0, 2.0)
    m.record_scalar("/d", 7, kind="x")
    m.unregister_event_listener(listen)
    m.unregister_event_duration_listener(listen)
    m.unregister_event_time_span_listener(listen)
    m.unregister_scalar_listener(listen)
    m.record_event("/e")
    told.append(raised(lambda: m.unregister_event_listener(listen))[0])
    return told


def test_listeners_hear_of_events():
    assert heard(minijax) == heard(jax)


def test_a_listener_hears_of_each_program_that_is_compiled():
    def run(j):
        names, m = [], module(j, "monitoring")

        def listen(event, seconds, fun_name=None, **kwargs):
            if event == "/jax/core/compile/backend_compile_duration":
                names.append(fun_name)

        def doubled(x):
            return x * 2

        f, x, y = j.jit(doubled), np.ones(3, np.float32), np.ones(4, np.float32)
        m.register_event_duration_secs_listener(listen)
        for arg in (x, x, y):
            f(arg)
        m.unregister_event_duration_listener(listen)
        return len(names)

    assert run(minijax) == run(jax) == 2


LAYOUTS = """
    L.Layout([1, 0])
    L.Layout((1,), [[2]])
    L.Layout((1, 0)) == L.Layout([1, 0])
    L.Layout((0, 1)).update(major_to_minor=(1, 0))
    L.Layout.AUTO
    L.Format(L.Layout.AUTO)
    L.Format(L.Layout((0,)))
    L.Format(3)
    L.Format(None, 3)
    j.device_put(x, L.Format(L.Layout((1, 0)), S)).sharding
    j.device_put({"a": x, "b": x}, {"a": L.Format(None, S), "b": S})["a"].sharding
    j.device_put(x, L.Format())
    j.device_put(x, L.Format(L.Layout.AUTO, S))
    j.device_put(x, L.Layout((0, 1)))
    j.jit(lambda x: x + 1, in_shardings=L.Format(L.Layout((1, 0)), S))(x)
    j.jit(lambda x: x + 1, out_shardings=L.Format(L.Layout((1, 0)), S))(x)
    j.jit(lambda x: x + 1, in_shardings=L.Format(L.Layout.AUTO))(x)
    j.jit(lambda x: L.with_layout_constraint(x * 2, L.Layout((1, 0))))(x)
    L.with_layout_constraint([x, x], [L.Layout((1, 0)), L.Layout((0, 1))])
    L.with_layout_constraint(x, L.Layout((1, 0, 2)))
    L.with_layout_constraint(x, 3)
"""


def in_layouts(text, j):
    layout, x = module(j, "experimental.layout"), j.numpy.ones((2, 3))
    here = j.sharding.SingleDeviceSharding(j.devices()[0])
    try:
        return str(eval(text, {"j": j, "L": layout, "S": here, "x": x}))
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("text", LAYOUTS.strip().split("\n    "))
def test_layouts_are_checked_and_kept_as_in_jax(text):
    assert in_layouts(text, minijax) == in_layouts(text, jax)


def test_spaces_have_jax_s_names():
    ours, theirs = module(minijax, "memory").Space, jax.memory.Space
    assert [(s.value, repr(s)) for s in ours] == [(s.value, repr(s)) for s in theirs]
    x = minijax.numpy.ones(2)
    assert minijax.device_put(x, ours.Device).sharding.memory_kind == "device"
    with pytest.raises(ValueError, match="memory of their device"):
        minijax.device_put(x, ours.Host)


def test_a_foreign_function_is_registered_and_refused_when_it_is_called():
    import ctypes

    ffi = module(minijax, "ffi")
    capsule = ffi.pycapsule(ctypes.CFUNCTYPE(None)(print))
    assert type(capsule).__name__ == "PyCapsule"
    ffi.register_ffi_target("mine", capsule, platform="cpu")
    call = ffi.ffi_call("mine", minijax.ShapeDtypeStruct((), np.float32))
    with pytest.raises(NotImplementedError, match="'mine'. It is registered for cpu"):
        minijax.jit(call)(1.0)


# Functions along one axis of a mesh.

ALONG = """
    j.smap(lambda a: a + j.lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")(v)
    j.smap(lambda a, b: a + b.sum(), in_axes=(0, None), out_axes=0, axis_name="x")(v, v)
    j.smap(lambda a: a * 2, in_axes=1, out_axes=1, axis_name="x")(v.reshape(2, 4))
    j.smap(lambda a: j.lax.psum(a, "x"), in_axes=0, out_axes=None, axis_name="x")(v)
    j.smap(in_axes=0, out_axes={"a": 0}, axis_name="x")(lambda a: {"a": a})(v)
    j.grad(lambda v: j.smap(abs, in_axes=0, out_axes=0, axis_name="x")(v).sum())(v)
    j.smap(lambda a: a, in_axes=0, out_axes=0, axis_name="z")(v)
    j.smap(lambda a: a, in_axes=0, out_axes=0, axis_name=("x",))(v)
    j.smap(lambda a: a, in_axes=0.0, out_axes=0, axis_name="x")(v)
    j.smap(lambda a: a, in_axes=3, out_axes=0, axis_name="x")(v)
    j.smap(lambda a: a, in_axes=0, out_axes=3, axis_name="x")(v)
    j.smap(lambda a: a, out_axes=0, axis_name="x")(v)
    j.smap(3, in_axes=0, out_axes=0, axis_name="x")
    S.auto_axes(lambda a: a + 1)(v)
    S.auto_axes(lambda a: a + 1, out_sharding=j.P("x"))(v)
    S.auto_axes(lambda a: a + 1)(v, out_sharding=j.P("x"))
    S.auto_axes(axes="x", out_sharding=j.P("x"))(lambda a: a + 1)(v)
    S.explicit_axes(lambda a: a + 1)(v)
    S.explicit_axes(lambda a: a + 1, in_sharding=j.P("x"))(v)
"""


def along(text, j):
    kind = "Auto" if "smap" in text else "Explicit"  # which type JAX needs for it
    kinds = (getattr(j.sharding.AxisType, kind),)
    mesh = j.make_mesh((2,), ("x",), axis_types=kinds)
    v = j.numpy.arange(8.0)
    try:
        with j.set_mesh(mesh):
            found = eval(text, {"j": j, "S": j.sharding, "v": v})
    except (TypeError, ValueError) as error:
        return type(error)
    return [(x.tolist(), str(x.sharding.spec)) for x in j.tree.leaves(found)]


@pytest.mark.parametrize("text", ALONG.strip().split("\n    "))
def test_one_axis_of_a_mesh_is_dealt_out_as_in_jax(text):
    ours, theirs = along(text, minijax), along(text, jax)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        assert [value for value, _ in ours] == [value for value, _ in theirs]
        if "smap" not in text:
            assert ours == theirs


def test_smap_takes_no_axis_from_the_end_and_wants_a_mesh():
    def double(axis):
        how = {"in_axes": axis, "out_axes": 0, "axis_name": "x"}
        return minijax.smap(lambda a: a * 2, **how)

    with pytest.raises(ValueError, match="count from the front"):
        double(-1)
    with pytest.raises(ValueError, match="set_mesh"):
        double(0)(np.ones(2))
