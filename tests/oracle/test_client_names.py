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


# Sparse arrays.

SPARSE = """
    M.todense()
    N.todense()
    D.todense()
    O.todense()
    (M.nse, M.ndim, M.size, M.shape, len(M), M.n_batch, M.n_sparse, M.n_dense)
    (str(M), str(Bt), str(M.dtype), M.data, M.indices)
    (M.T, M.T.todense())
    M.transpose((1, 0))
    M @ v
    M @ B
    M @ jnp.ones((2, 3, 4))
    M @ np.arange(3)
    B @ M
    v[:2] @ M
    w @ v
    v @ w
    D @ v
    O @ v
    M.sum()
    O.sum()
    M.sum(axis=0)
    M.sum(axis=(0, 1))
    O.sum(1).todense()
    M * 2
    2 * M
    M * d
    M * v
    M / 2
    -M
    M + M
    (M - N).todense()
    M + d
    M.astype("int32")
    Bt @ v
    Bt @ jnp.ones((2, 3, 2))
    Bt.todense()
    Bt.sum()
    S.todense(d)
    S.bcoo_todense(S.bcoo_fromdense(d))
    S.BCOO.fromdense(d, nse=5)
    S.BCOO.fromdense(d, nse=5) @ v
    S.BCOO.fromdense(d, nse=2)
    S.BCOO.fromdense(jnp.float32(3))
    S.BCOO.fromdense(jnp.array([[0, 1], [1, 0]])) @ jnp.array([1.5, 2])
    S.sparsify(jnp.dot)(d, v)
    j.vmap(lambda m: m @ v)(Bt)
    j.vmap(lambda m: m.todense())(Bt)
    j.vmap(lambda x: M @ x)(jnp.ones((4, 3)))
    j.vmap(lambda x: M * x)(jnp.ones(4))
    j.jit(lambda m, x: m @ x)(M, v)
    j.jit(lambda m: (m.T * 2).sum(0))(M)
    j.jit(lambda d: S.BCOO.fromdense(d, nse=3))(d)
    j.jit(S.BCOO.fromdense)(d)
    j.grad(lambda x: (M @ x).sum())(v)
    j.grad(lambda a: (S.BCOO((a, I), shape=(2, 3)) @ v).sum())(jnp.ones(3))
    j.grad(lambda a: (S.BCOO((a, I), shape=(2, 3)).todense() ** 2).sum())(v)
    j.hessian(lambda a: ((v[:2] @ S.BCOO((a, I), shape=(2, 3))) ** 2).sum())(v)
    j.grad(lambda m: (m @ v).sum())(M)
    j.jvp(lambda x: M @ x, (v,), (v,))
    isinstance(M, S.JAXSparse), isinstance(d, S.JAXSparse)
    S.BCOO((jnp.ones(2), I), shape=(2, 3))
    M @ jnp.ones(4)
    M @ 2
    M == M
    M + 1
    jnp.sin(M)
"""


def sparse_answer(text, j):
    sparse, jnp = module(j, "experimental.sparse"), j.numpy
    d, v = jnp.array([[0.0, 1, 0], [2, 0, 3]]), jnp.arange(3.0)
    names = {"j": j, "jnp": jnp, "np": np, "S": sparse, "d": d, "v": v}
    i = names["I"] = jnp.array([[0, 1], [1, 0], [1, 2]])
    names["B"] = jnp.arange(6.0).reshape(3, 2)
    twice, outside = i.at[1].set(i[0]), i.at[0, 1].set(5)
    for name, places in {"N": i, "D": twice, "O": outside}.items():
        names[name] = sparse.BCOO((v + 1, places), shape=(2, 3))
    pair = jnp.ones((2, 3)), jnp.stack([i, i])
    names["Bt"] = sparse.BCOO(pair, shape=(2, 2, 3))
    names |= {"M": sparse.BCOO.fromdense(d), "w": sparse.BCOO.fromdense(v)}
    try:
        found = eval(text, names)
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    whole = isinstance(found, sparse.JAXSparse)
    known = (found.shape, found.indices_sorted, found.unique_indices) if whole else ()
    leaves = [x if isinstance(x, str) else np.asarray(x) for x in j.tree.leaves(found)]
    return known, [x if isinstance(x, str) else (x.tolist(), x.dtype) for x in leaves]


@pytest.mark.parametrize("text", SPARSE.strip().split("\n    "))
def test_sparse_arrays_are_jax_s(text):
    assert sparse_answer(text, minijax) == sparse_answer(text, jax)


@pytest.mark.parametrize(
    "text",
    [
        "M @ M",
        "M * M",
        "M[0]",
        "Bt.T",
        "S.BCOO.fromdense(d, n_dense=1)",
        "S.BCSR.fromdense(d)",
        "S.COO((v, v, v), shape=(2, 3))",
        "S.sparsify(jnp.dot)(M, v)",
    ],
)
def test_what_sparse_arrays_cannot_do_is_refused(text):
    assert sparse_answer(text, minijax) is NotImplementedError


def test_names_of_sparse_arrays_that_are_not_here_say_why():
    ours, theirs = module(minijax, "experimental.sparse"), jax.experimental.sparse
    functions = {n for n in dir(theirs) if n[0] != "_" and not n.endswith("_p")}
    modules = {*"ad api bcoo bcsr coo csr random transform util".split()}
    for name in functions - modules - {*dir(ours)}:
        with pytest.raises(AttributeError, match="of sparse arrays there is BCOO"):
            getattr(ours, name)


# Types of a byte and less: their names, limits and kinds.

NARROW = """
    float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3
    float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    float8_e8m0fnu int1 int2 int4 uint1 uint2 uint4
""".split()
KINDS = """
    generic number inexact floating complexfloating integer signedinteger
    unsignedinteger bfloat16 float32 int8 int4 float8_e5m2
""".split()
WORDS = "bool", "integral", "numeric", "signed integer", "real floating"


def limits(j, name):
    """What can be asked of a narrow type, and the class of the error otherwise."""
    found, jnp = [], j.numpy
    kind = getattr(jnp, name)
    for ask in (jnp.finfo, jnp.iinfo):
        for given in (kind, kind.dtype, name):
            try:
                info = ask(given)
            except ValueError:
                found.append(ValueError)
            else:
                found.append((float(info.max), float(info.min), info.bits, info.dtype))
    for given in (kind, kind.dtype):
        found += [jnp.issubdtype(given, getattr(jnp, other)) for other in KINDS]
        found += [j.dtypes.issubdtype(given, getattr(jnp, other)) for other in KINDS]
        found += [jnp.isdtype(given, word) for word in WORDS]
    named = kind.__name__, repr(kind).replace("minijax", "jax")
    return [*found, named, jnp.dtype(kind), kind == kind.dtype.type]


@pytest.mark.parametrize("name", NARROW)
def test_a_narrow_type_has_jax_s_name_limits_and_kinds(name):
    assert limits(minijax, name) == limits(jax, name)


@pytest.mark.parametrize("name", ["int1", "float6_e2m3fn"])
def test_arrays_of_narrow_types_are_refused(name):
    kind, jnp = getattr(minijax.numpy, name), minijax.numpy
    for make in (
        lambda: jnp.ones(3, kind),
        lambda: jnp.ones(3).astype(kind),
        lambda: jnp.asarray(np.ones(3, kind.dtype)),
        lambda: kind(1),
        lambda: minijax.jit(lambda x: x.astype(kind))(jnp.ones(3)),
        lambda: minijax.lax.convert_element_type(jnp.ones(3), kind),
        lambda: jnp.promote_types(kind, "float32"),
        lambda: minijax.device_put(np.ones(3, kind.dtype)),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            make()
