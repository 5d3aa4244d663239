"""pmap, shard_map and collectives between threads, on the two devices of the tests."""

import threading
import time
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    P,
    clear_caches,
    config,
    device_put,
    grad,
    jit,
    jvp,
    lax,
    make_jaxpr,
    make_mesh,
    pmap,
    pure_callback,
    shard_map,
    vmap,
)
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding.manual_axes import replica_group, run_replicas
from minijax.sharding.named_sharding import DeviceGroup
from minijax.sharding.replicas import Rendezvous, ReplicaRun

ROWS = jnp.arange(6.0).reshape(2, 3) + 1


@pytest.fixture(scope="module", params=[True, False], autouse=True)
def engine(request):
    """Replicas meet in machine code, and in Python."""
    config.update("minijax_exchange", request.param)
    clear_caches()
    yield
    config.update("minijax_exchange", True)
    clear_caches()


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2,), ("x",))


def sum_of(v):
    return lax.psum(v, "i")


def expected_sum(x):
    return np.broadcast_to(np.asarray(x).sum(0), x.shape)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "complex64"])
def test_sum_of_any_size_and_dtype(size, dtype):
    x = jnp.asarray(np.arange(2 * size).reshape(2, size) % 5, dtype)
    found = pmap(sum_of, "i")(x)
    assert found.dtype == x.dtype and found.shape == x.shape
    wide = np.asarray(x.astype("complex64"))
    assert np.allclose(np.asarray(found.astype("complex64")), expected_sum(wide))


@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
def test_every_backend_meets(backend):
    with config.override("minijax_backend", backend):
        found = pmap(lambda v: sum_of(v) * lax.axis_index("i"), "i")(ROWS)
    assert np.allclose(found, expected_sum(ROWS) * np.array([[0], [1]]))


def test_error_of_a_replica_arrives_and_the_next_call_works():
    def fault(v):
        if v[0] == 4:
            raise ZeroDivisionError("a fault")
        return v

    f = pmap(lambda v: sum_of(pure_callback(fault, v, v)), "i")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with pytest.raises(Exception, match="a fault"):
            f(ROWS)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1
    assert np.allclose(f(ROWS - 10), expected_sum(ROWS - 10))


def test_missing_replica_is_named_with_axis_and_line():
    def apart(v):
        return lax.cond(lax.axis_index("i") == 1, lambda v: v, sum_of, v)

    soon = config.override("minijax_collective_timeout", 0.2)
    words = "axis 'i'.*replica 1 missing"
    with soon, pytest.raises(TimeoutError, match=words) as caught:
        pmap(apart, "i")(ROWS)
    assert "test_sharding_replicas.py" in str(caught.value)
    assert np.allclose(pmap(sum_of, "i")(ROWS), expected_sum(ROWS))


def test_replicas_in_different_collectives_are_told():
    def two(v):
        return lax.cond(
            lax.axis_index("i") == 1, lambda v: lax.pmax(v, "i"), sum_of, v
        )

    with pytest.raises(RuntimeError, match="replica 0: psum.*\n.*replica 1: pmax"):
        pmap(two, "i")(ROWS)


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan"])
def test_timeout_has_to_be_a_number_above_zero(seconds):
    with pytest.raises(ValueError, match="minijax_collective_timeout"):
        config.update("minijax_collective_timeout", seconds)


def test_interrupt_of_the_caller_releases_the_others():
    def program(rank):
        if rank == 0:
            raise KeyboardInterrupt
        run.meeting(rank, ("x",)).exchange(rank, "a sum", 1, lambda xs: xs)

    run = ReplicaRun({"x": 3})
    with pytest.raises(KeyboardInterrupt):
        run_replicas(run, program)


def test_rows_of_a_mesh():
    shape = {"x": 4, "y": 2}
    assert replica_group(shape, 5, ("x",)) == (1, 3, 5, 7)
    assert replica_group(shape, 5, ("y", "x")) == (0, 2, 4, 6, 1, 3, 5, 7)
    with pytest.raises(NameError, match="pmap"):
        replica_group(shape, 0, ("z",))


def test_many_exchanges_never_mix():
    def program(rank):
        meeting = run.meeting(rank, ("x",))
        found = []
        for i in range(300):
            combine = lambda xs: [sum(xs)] * len(xs)  # noqa: E731
            found.append(meeting.exchange(rank, "sum", rank + i, combine))
        return found

    run = ReplicaRun({"x": 4})
    expected = [6 + 4 * i for i in range(300)]
    assert run_replicas(run, program) == [expected] * 4
    assert isinstance(run.meeting(0, ("x",)), Rendezvous)


def test_calls_from_many_threads():
    f, found = pmap(sum_of, "i"), []
    f(ROWS)
    calls = [threading.Thread(target=lambda: found.append(f(ROWS))) for _ in range(6)]
    for step in (threading.Thread.start, threading.Thread.join):
        list(map(step, calls))
    assert len(found) == 6 and all(np.allclose(x, expected_sum(ROWS)) for x in found)


def test_body_is_written_down_and_compiled_once():
    traced = []

    def f(v):
        traced.append(v)
        return sum_of(v)

    g = pmap(f, "i")
    for _ in range(3):
        g(ROWS)
    assert len(traced) == 1
    g(ROWS[:, :2])
    assert len(traced) == 2


def test_a_shard_map_runs_the_function_at_each_call(mesh):
    state = {"s": 2.0}
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    x = jnp.arange(8.0)

    class Layer:
        def __init__(self, w):
            self.w = w

        def scale(self, b):
            return b * self.w

    layer = Layer(2.0)
    f, g = (shard_map(each, **how) for each in (lambda b: b * state["s"], layer.scale))
    for s in 2.0, 3.0, 2.0, np.arange(4.0) + 1:
        state["s"] = layer.w = s
        scales = np.resize(s, 8)
        for h in f, g:
            assert np.array_equal(h(x), x * scales)
            assert np.array_equal(grad(lambda v, h=h: h(v).sum())(x), scales)
            assert np.array_equal(minijax.vmap(h)(jnp.stack([x, x]))[1], x * scales)
            assert np.array_equal(minijax.jit(lambda v, h=h: h(v))(x), x * scales)


def test_a_body_that_is_the_same_is_compiled_once(mesh, monkeypatch):
    from minijax.sharding import shard_map as sharded_maps

    made, real = [], sharded_maps.MeshProgram
    monkeypatch.setattr(
        sharded_maps, "MeshProgram", lambda *args: made.append(args) or real(*args)
    )
    state, x = {"s": 2.0}, jnp.arange(8.0)

    def body(b):
        return jnp.sin(b) * state["s"] + lax.psum(b, "x")

    f = shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    for s in 2.0, 2.0, 3.0, 2.0, 0.0, -0.0:
        state["s"] = s
        f(x)
    assert len(made) == 4  # 2, 3, 0 and -0
    counts = [grad(lambda v: f(v).sum())(x) is None or len(made) for _ in range(4)]
    assert counts[0] == counts[-1] > 4


def test_what_makes_programs_the_same():
    from minijax.sharding.pmap import jaxpr_key

    def of(f, *args):
        return jaxpr_key(minijax.make_jaxpr(f)(*args))

    def program(v, w, number=2.0):
        return lax.fori_loop(0, 3, lambda i, u: u * number + v, w), jnp.sin(v)

    x, i = jnp.arange(3.0), jnp.arange(3)
    same = of(program, x, x)
    assert same == of(program, x, x) and hash(same) == hash(of(program, x, x))
    others = [
        of(program, i, x), of(program, x[:2], x[:2]),
        of(lambda v, w: program(w, v), x, x), of(lambda v, w: program(v, v), x, x),
        of(lambda v, w: program(v, w, 3.0), x, x),
        of(lambda v, w: program(v, w)[::-1], x, x),
    ]  # fmt: skip
    assert len({same, *others}) == 7
    assert of(jnp.sin, x) == of(jnp.sin, x) != of(jnp.cos, x)
    assert of(lambda v: v * 0.0, x) != of(lambda v: v * -0.0, x)  # other lines, too
    kept = jnp.arange(3.0)
    both = [
        minijax.make_jaxpr(lambda v, c=c: v + c)(x) for c in (kept, kept, kept + 0)
    ]
    assert jaxpr_key(both[0]) == jaxpr_key(both[1]) != jaxpr_key(both[2])


BODIES = {
    "sum": lambda w, v: lax.psum((w * jnp.sin(w * v)).sum(), "x"),
    "one side": lambda w, v: lax.psum(
        lax.cond(v[0] > 2, lambda v: v * w, jnp.sin, v).sum(), "x"
    ),
    "loop": lambda w, v: lax.psum(
        lax.scan(
            lambda c, r: (jnp.sin(c) * r * w + 0.1 * lax.psum(c, "x"), c),
            lax.pcast(w, "x", to="varying"),
            v,
        )[0],
        "x",
    ),
    "inside": lambda w, v: grad(lambda w: jnp.sin(w * v).sum())(w),
    "twice": lambda w, v: lax.psum(lax.psum(w, "x") * v, "x").sum(),
    "gather": lambda w, v: lax.psum(jnp.sin(lax.all_gather(v * w, "x")).sum(), "x"),
}


@pytest.mark.parametrize("name", [*BODIES])
def test_gradients_are_those_of_differences(mesh, name):
    v = jnp.arange(6.0) / 2
    how = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P()}
    f = shard_map(BODIES[name], **how)
    slope = grad(lambda w: jnp.sin(f(w, v)))
    measured = (np.sin(f(0.51, v)) - np.sin(f(0.49, v))) / 0.02
    assert np.allclose(slope(0.5), measured, rtol=2e-2, atol=2e-2)
    assert np.allclose(jit(slope)(0.5), slope(0.5), rtol=1e-4)
    forward = jvp(lambda w: jnp.sin(f(w, v)), (0.5,), (1.0,))[1]
    assert np.allclose(forward, slope(0.5), rtol=1e-4)
    many = vmap(slope)(jnp.array([0.5, 0.7]))
    assert np.allclose(many, [slope(0.5), slope(0.7)], rtol=1e-4)


@pytest.mark.parametrize("check", [True, False])
def test_slope_of_what_is_shared_arrives_summed(mesh, check):
    how = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P()}
    f = shard_map(lambda w, v: grad(lambda w: (w * v).sum())(w), check_vma=check, **how)
    assert f(1.0, jnp.arange(4.0)) == (6.0 if check else 1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize(
    "start", [jnp.zeros_like, jnp.ones_like, lambda a: lax.full_like(a, 2.5)]
)
def test_what_is_like_a_value_varies_as_it_does(mesh, start, wrap):
    """So it may begin a loop; a value that all share is like none that varies."""

    def total(a):
        return lax.fori_loop(0, 2, lambda i, c: c + a, start(a))

    a = jnp.arange(6.0).reshape(2, 3)
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    found = wrap(shard_map(total, **how))(a)
    np.testing.assert_array_equal(found, 2 * a + start(a[:1]))
    slope = wrap(shard_map(grad(lambda a: total(a * a).sum()), **how))(a)
    np.testing.assert_array_equal(slope, 4 * a)
    with pytest.raises(TypeError, match="loop_carry"):
        shard_map(lambda a: lax.fori_loop(0, 2, lambda i, c: c + a, 1.0), **how)(a)


@pytest.mark.parametrize("check", [True, False])
def test_conjugate_gradients_on_each_device(mesh, check):
    a = jnp.stack([2 * jnp.eye(3), 3 * jnp.eye(3)]) + 1

    def solve(a):
        return minijax.scipy.sparse.linalg.cg(a[0], a[0, 0])[0][None]

    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x"), "check_vma": check}
    found = jit(shard_map(solve, **how))(a)
    np.testing.assert_allclose(found, [[1, 0, 0]] * 2, atol=1e-5)


def root_of(x):
    return lax.custom_root(lambda y: y - x, x, lambda f, y: x, lambda g, y: y).sum()


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        lambda a: jnp.linalg.solve(a, a + 1),
        minijax.scipy.linalg.expm,
        lambda a: lax.fori_loop(0, 2, lambda i, c: jnp.linalg.solve(a, c), a),
        lambda a: lax.cond(a.sum() > 0, jnp.linalg.inv, jnp.sin, a),
        grad(lambda a: jnp.linalg.inv(a).sum()),
        grad(root_of),
    ],
)
def test_solutions_in_a_map_that_is_compiled(mesh, function, check):
    """The programs of a solve have names, which the one without types keeps."""
    a = 3 * jnp.eye(3) + jnp.arange(18.0).reshape(2, 3, 3) / 20
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    mapped = minijax.jit(shard_map(vmap(function), check_vma=check, **how))
    np.testing.assert_allclose(mapped(a), vmap(function)(a), 1e-4, 1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, minijax.jit, minijax.checkpoint])
def test_slope_is_summed_where_only_the_other_operand_varies(mesh, wrap):
    """The tangent of a sum varies as the sum does, and not as what moves in it."""
    how = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P()}
    f = shard_map(grad(wrap(lambda w, v: (w * 3 + jnp.sin(v)).sum())), **how)
    assert f(1.0, jnp.arange(4.0)) == 12.0  # two devices, two numbers on each

    def at_two(w, v):
        return minijax.vjp(wrap(lambda w: jnp.sin(w) + v), w)[1](1 + v * 0)[0]

    found = shard_map(at_two, **how)(jnp.zeros(2), jnp.arange(4.0))
    assert np.allclose(found, 2.0)


def test_a_slope_that_is_zero_varies_as_its_argument(mesh):
    def constant(v):
        slope = grad(lambda u: 1.0 + 0 * lax.stop_gradient(u).sum())(v)
        kinds.append(minijax.typeof(slope).manual_axis_type.varying)
        return slope

    kinds: list = []
    shard_map(constant, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(4.0))
    assert kinds == [{"x"}]


def test_branch_that_devices_choose_may_not_hold_a_collective(mesh):
    def f(v):
        return lax.cond(v[0] > 2, lambda v: lax.psum(v, "x") + v, lambda v: v, v)

    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    with pytest.raises(ValueError, match=r"'cond'.*varies along \['x'\]"):
        shard_map(f, **how)(jnp.arange(4.0))

    def g(v):
        return lax.while_loop(lambda c: c[0] < 9, lambda c: c + lax.psum(c, "x"), v)

    with pytest.raises(ValueError, match="'while'"):
        shard_map(g, **how)(jnp.arange(4.0))


def test_without_meshes_texts_have_no_new_equations():
    text = str(make_jaxpr(grad(lambda x: (2.0 * x).sum()))(jnp.ones(3)))
    assert "pvary" not in text and "{V:" not in text


def test_the_program_of_a_pmap_can_be_looked_at():
    f = pmap(lambda v, k: sum_of(v) * k, "i", static_broadcasted_argnums=1)
    lowered = f.lower(ROWS, 3)
    assert "psum" in lowered.as_text()
    assert np.allclose(lowered.compile()(ROWS), f(ROWS, 3))


def test_parts_on_the_right_devices_are_not_cut_again(mesh, monkeypatch):
    """The meshes have other names for their axes, or one dealt out by `device_put`."""
    rows = [pmap(lambda v: v)(ROWS), device_put(ROWS, NamedSharding(mesh, P("x")))]
    twisted = Mesh(mesh.devices[::-1], ("x",))
    other = device_put(ROWS, NamedSharding(twisted, P("x")))
    f, whole = pmap(lambda v: sum_of(v) + v, "i"), expected_sum(ROWS) + ROWS
    assert np.allclose(f(other), whole)

    def taken(group, array):
        raise AssertionError("cut again")

    monkeypatch.setattr(DeviceGroup, "taken", taken)
    for x in (*rows, *rows):
        assert np.allclose(f(x), whole)
    with pytest.raises(AssertionError, match="cut again"):
        f(other)


def test_statics_options_and_donation(mesh):
    scaled = pmap(lambda a, k: a * k, static_broadcasted_argnums=1)
    assert np.allclose(scaled(ROWS, 3), ROWS * 3)
    typed = pmap(lambda a, k: jnp.full(3, k) / a, static_broadcasted_argnums=1)
    for number in (1, True, 1.0, 0.0, -0.0):
        right, found = jnp.full((2, 3), number) / ROWS, typed(ROWS, number)
        assert np.array_equal(np.signbit(found), np.signbit(right)), number
    kind = pmap(lambda a, k: jnp.int32(a) * k, static_broadcasted_argnums=1)
    kinds = [kind(ROWS, k).dtype for k in (1, True, 1.0)]
    assert kinds == ["int32", "int32", "float32"]
    given = ROWS + 0
    pmap(lambda a: a, donate_argnums=0)(given)
    assert given.is_deleted()
    spec = partial(shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert np.allclose(spec(lambda v: v * 2)(jnp.arange(4.0)), np.arange(4) * 2)
    assert np.allclose(spec()(lambda v: v * 2)(jnp.arange(4.0)), np.arange(4) * 2)
