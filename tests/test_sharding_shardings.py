"""Meshes, arrays in parts, and sharding rules: all ways to cut, all copies compared."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.core import rule_tables
from minijax.sharding import AbstractMesh, Mesh, NamedSharding
from minijax.sharding import PartitionSpec as P
from tests.commands import LONG

MESH = minijax.make_mesh((2,), ("x",))


def cut(x, *spec, mesh=MESH):
    return minijax.device_put(x, NamedSharding(mesh, P(*spec)))


def pooled(v, groups):
    """Convolve eight examples of two features, and fold windows of the results."""
    kernel = v[:, : 2 // groups].reshape(8, 2 // groups, 1, 1)
    made = lax.conv_general_dilated(
        v.reshape(8, 2, 2, 2), kernel, (1, 1), "SAME", feature_group_count=groups
    )
    return lax.reduce_window(made, -jnp.inf, lax.max, (1, 1, 2, 2), (1,) * 4, "VALID")


def asked(v):
    """Ask for a cut inside of a loop, on the mesh of two."""
    if any(device not in MESH.devices for device in minijax.devices()):
        return v
    return lax.with_sharding_constraint(v, NamedSharding(MESH, P(None, "x")))


FUNCTIONS = {
    "elementwise": lambda v: jnp.tanh(v) * v + v.T - 1,
    "stretched": lambda v: v / v.sum(1, keepdims=True) + v.max(0),
    "products": lambda v: v @ v + v.T @ v + jnp.outer(v[0], v[1]),
    "batches": lambda v: lax.dot_general(v, v, (((1,), (1,)), ((0,), (0,)))),
    "folds": lambda v: (v.sum(0), v.min(), v.prod(1), v.argmax(0), (v > 0).any(1)),
    "reshapes": lambda v: (v.reshape(64), v.reshape(2, 4, 8), v.reshape(8, 2, 4).T),
    "small_axes": lambda v: v.reshape(8, 1, 8, 1)[:, 0].squeeze(-1)[None] * v[:, None],
    "slices": lambda v: (v[2:6], v[:, 1], v[::-1], v[::2, 3:4], v[:0]),
    "order": lambda v: (jnp.sort(v, 0), jnp.cumsum(v, 1), jnp.argsort(v)),
    "joined": lambda v: jnp.concatenate([v, v.T], 1) + jnp.pad(v, ((0, 0), (4, 4))),
    "indexed": lambda v: (v[jnp.array([1, 5])], v.at[3].set(0.0), jnp.take(v, 2, 1)),
    "types": lambda v: (v.astype("int32"), lax.bitcast_convert_type(v, "uint8")),
    "gradient": minijax.grad(lambda v: (jnp.sin(v) @ v).sum()),
    "examples": minijax.vmap(lambda v: (v * v.sum()).max()),
    "taken": lambda v: (v[:, jnp.array([1, 5])], minijax.vmap(lambda r: r[3])(v)),
    "own_rows": minijax.vmap(lambda r: r[jnp.argmax(r)] + r.at[2].set(0.0)),
    "moving": lambda v: lax.dynamic_update_slice_in_dim(
        v, lax.dynamic_slice_in_dim(v, jnp.int32(v[0, 0]) % 5, 2, 1), 3, 1
    ),
    "summed_rows": lambda v: v.at[jnp.array([1, 1, 7])].add(v[:3]),
    "steps": lambda v: lax.scan(lambda c, _: (jnp.sin(c) @ v, c.sum(0)), v, None, 3),
    "zeros_first": lambda v: lax.scan(
        lambda c, _: (c + v, None), jnp.zeros((8, 8)), None, 3
    )[0],
    "until": lambda v: lax.while_loop(
        lambda c: c.sum() < 1e3, lambda c: c * 2 + 1, jnp.abs(v)
    ),
    "each_until": minijax.vmap(
        lambda r: lax.while_loop(
            lambda c: c.sum() < 20, lambda c: c * 2 + 1, jnp.abs(r)
        )
    ),
    "updates_cut_elsewhere": lambda v: (
        v.at[jnp.array([1, 5, 6])].set(v.T[:3]) * 2,
        v.at[jnp.array([1, 1, 6])].add(v.T[:3]) * 2,
        lax.dynamic_update_slice(v, v.T[:3], (2, 0)) * 2,
    ),
    "two_ways": lambda v: lax.cond(v.sum() > 0, jnp.sin, lambda u: u.T @ u, v),
    "loop_gradient": minijax.grad(
        lambda v: lax.scan(lambda c, _: (jnp.tanh(c) * v, None), v, None, 3)[0].sum()
    ),
    "asked": lambda v: lax.scan(
        lambda c, r: (asked(c * 2) + r, asked(c)[0]), v, v
    ),
    "loops": lambda v: lax.scan(lambda c, r: (c + r, c * r), v[0], v),
    "while": lambda v: lax.fori_loop(0, 3, lambda i, u: jnp.sin(u) + v, v),
    "branches": lambda v: lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v),
    "called": lambda v: minijax.checkpoint(minijax.jit(lambda u: u @ u))(v),
    "constants": lambda v: v + jnp.arange(8.0) * NUMBERS,
    "windows": minijax.value_and_grad(lambda v: jnp.sum(pooled(v, 1) ** 2)),
    "groups": lambda v: pooled(v, 2),
    "nothing": lambda v: (v, 1.0, jnp.zeros(3)),
    "random": lambda v: v + minijax.random.normal(minijax.random.key(0), v.shape),
}
CUTS = [(), ("x",), (None, "x"), ("x", "y"), ("y", "x"), (("x", "y"),), (None, "y")]
NUMBERS = np.random.default_rng(36).normal(size=(8, 8)).astype("float32")


def compare(names, cuts, mesh, eager):
    """Raise unless each copy of each part is what one device computes."""
    for name in names:
        f = FUNCTIONS[name]
        expected = minijax.tree.leaves(f(jnp.asarray(NUMBERS)))
        for spec in cuts:
            x = cut(NUMBERS, *spec, mesh=mesh)
            results = minijax.tree.leaves((f if eager else minijax.jit(f))(x))
            for result, right in zip(results, expected, strict=True):
                for shard in getattr(result, "addressable_shards", ()):
                    part = np.asarray(right)[shard.index]
                    np.testing.assert_allclose(shard.data, part, 1e-3, 1e-4, True, name)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_of_two_halves(name):
    compare([name], [("x",), (None, "x")], MESH, eager=False)


def main():
    """Compare on eight devices: a third of the cuts, others for the next function."""
    mesh = minijax.make_mesh((4, 2), ("x", "y"))
    for turn, name in enumerate(FUNCTIONS):
        compare([name], CUTS if LONG else CUTS[turn % 3 :: 3], mesh, eager=False)
    compare(["elementwise", "products", "folds"], CUTS[3:5], mesh, eager=True)
    x = cut(NUMBERS, "x", "y", mesh=mesh)
    print(json.dumps([str(x.sharding.spec), len(x.addressable_shards)]))


def test_all_cuts_on_eight_devices():
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import main; main()"],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8"}, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == ["P('x', 'y')", 8]


def test_a_wrong_rule_is_noticed(monkeypatch):
    from minijax.spmd.partitioner import ShardedValue, sharding_rules

    def forgetful(primitive, piece, axes, **params):
        y = primitive.bind(piece.value, axes=axes, **params)
        kept = tuple(c for i, c in enumerate(piece.spec) if i not in axes)
        return [ShardedValue(y, kept)]

    monkeypatch.setitem(sharding_rules, lax.reduce_sum_p, forgetful)
    minijax.clear_caches()
    with pytest.raises(AssertionError):
        compare(["stretched"], [(None, "x")], MESH, eager=False)
    minijax.clear_caches()


def test_the_program_of_one_device_is_its_text():
    x = cut(NUMBERS, None, "x")
    compiled = minijax.jit(lambda v: v @ v.T).lower(x).compile()
    compiled(x)
    assert "psum" in compiled.as_text() and "P(None, 'x')" in compiled.as_text()


@pytest.mark.parametrize("name", ["scan", "while", "cond"])
def test_what_is_cut_stays_cut_in_loops(name):
    f = {
        "scan": lambda v: lax.scan(lambda c, _: (c + v, None), 0 * v, None, 3)[0],
        "while": lambda v: lax.while_loop(lambda c: c.sum() < 99, jnp.exp, v),
        "cond": lambda v: lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v),
    }[name]
    x = cut(NUMBERS, None, "x")
    made = minijax.jit(f).lower(x).compile()
    assert made(x).sharding.spec == P(None, "x")
    assert "all_gather" not in made.as_text() and "gathered" not in made.as_text()


def test_the_text_says_what_is_gathered_and_where():
    x = cut(NUMBERS, "x")
    made = minijax.jit(lambda v, i: jnp.sort(v, 0)[i]).lower(x, 3).compile()
    made(x, 3)
    lines = [x for x in made.as_text().split("\n") if x.startswith("gathered for")]
    assert any(
        x.startswith("gathered for sort (") and "test_sharding_shardings.py" in x
        for x in lines
    ), lines
    assert lines[0].endswith("(x, ) -> (, )")


@pytest.mark.parametrize("check", [True, False])
def test_a_map_below_jit_leaves_its_result_in_parts(check):
    how = {"mesh": MESH, "in_specs": P("x"), "out_specs": P("x"), "check_vma": check}

    def body(b):
        start = jnp.zeros(8)
        start = lax.pcast(start, "x", to="varying") if check else start
        total, rows = lax.scan(lambda c, r: (c + lax.psum(r, "x") * r, c), start, b)
        return rows + total

    def f(v):
        return minijax.shard_map(body, **how)(v * 2) @ v

    x = cut(NUMBERS, "x")
    expected = f(jnp.asarray(NUMBERS))
    result = minijax.jit(f)(x)
    assert result.sharding.spec == P("x")
    np.testing.assert_allclose(result, expected, 1e-3)
    slope = minijax.jit(minijax.grad(lambda v: jnp.sin(f(v)).sum()))
    alone = minijax.grad(lambda v: jnp.sin(f(v)).sum())(jnp.asarray(NUMBERS))
    np.testing.assert_allclose(slope(x), alone, 2e-2, 1e-2)


def test_a_program_with_a_map_inside_runs_on_the_mesh():
    """Wherever its arguments are, unless they have to stay there."""
    f = minijax.shard_map(jnp.sin, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    nested = {
        "call": f,
        "gradient": minijax.grad(lambda v: f(v).sum()),
        "loop": lambda v: lax.fori_loop(0, 2, lambda i, v: f(v), v),
        "choice": lambda v: lax.cond(v[0, 0] < 9, f, jnp.cos, v),
        "call in a call": minijax.jit(f),
    }
    for name, function in nested.items():
        result = minijax.jit(function)(NUMBERS)
        assert result.sharding.spec == P("x"), name
        expected = function(cut(NUMBERS, "x"))
        np.testing.assert_allclose(result, expected, 1e-5, err_msg=name)
    there = minijax.device_put(NUMBERS, minijax.devices()[1])
    with pytest.raises(ValueError, match=r"shard_map inside jit with .* ids \[0, 1"):
        minijax.jit(f)(there)
    other = minijax.make_mesh((1,), ("x",))
    g = minijax.shard_map(jnp.cos, mesh=other, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="shard_map inside .* shard_map inside jit"):
        minijax.jit(lambda v: f(v) + g(v))(NUMBERS)


def test_replicas_and_devices_in_step_agree():
    from minijax.spmd.lockstep_executor import LockstepExecutor
    from minijax.spmd.partitioner import per_device_program

    closed = minijax.make_jaxpr(lambda v: jnp.tanh(v @ v.T).max(0))(NUMBERS)
    local, outs = per_device_program(closed, MESH, [((), ("x",))])
    in_step = LockstepExecutor(local, MESH, [P(None, "x")], [P(*outs[0])])
    x = cut(NUMBERS, None, "x")
    [slow], fast = in_step([x]), minijax.jit(lambda v: jnp.tanh(v @ v.T).max(0))(x)
    np.testing.assert_allclose(slow, fast, 1e-6)


def test_effects_happen_once(capsys):
    y = minijax.jit(lambda v: minijax.debug.print("{}", v.sum()) or v + 1)(cut(NUMBERS))
    assert capsys.readouterr().out.count("\n") == 1 and y.sharding.spec == P()
    g = minijax.jit(lambda v: minijax.debug.print("{}", v.sum()) or v + 1)
    y = g(cut(NUMBERS, None, "x"))
    assert capsys.readouterr().out.count("\n") == 1
    assert y.sharding.spec == P(None, "x") and np.allclose(y, NUMBERS + 1)


OTHER = Mesh(MESH.devices, ("a",))


@pytest.mark.parametrize("ask", [
    lambda f, to: minijax.jit(f, out_shardings=to),
    lambda f, to: minijax.jit(lambda v: lax.with_sharding_constraint(f(v), to)),
    lambda f, to: minijax.jit(lambda v: minijax.device_put(f(v), to)),
    lambda f, to: minijax.jit(lambda v: minijax.jit(f, out_shardings=to)(v)),
    lambda f, to: minijax.jit(
        lambda v: minijax.debug.callback(lambda x: None, v[0]) or f(v),
        out_shardings=to,
    ),
])  # fmt: skip
def test_results_go_to_another_mesh_of_the_same_devices(ask):
    def f(v):
        return jnp.sin(v) + v.sum(0)

    for cuts in ("x",), (None, "x"), ():
        for to in NamedSharding(OTHER, P(None, "a")), NamedSharding(MESH, P("x")):
            y = ask(f, to)(cut(NUMBERS, *cuts))
            assert y.sharding == to
            for shard in y.addressable_shards:
                np.testing.assert_allclose(shard.data, f(NUMBERS)[shard.index], 1e-5)


def test_a_constraint_on_another_mesh_changes_no_value():
    def f(v):
        inner = lax.with_sharding_constraint(jnp.sin(v), NamedSharding(OTHER, P("a")))
        return inner @ v

    y = minijax.jit(f)(cut(NUMBERS, None, "x"))
    np.testing.assert_allclose(y, np.sin(NUMBERS) @ NUMBERS, 1e-4, 1e-5)
    seven = jnp.arange(7.0)  # cannot be cut in equal parts, and stays as it is
    ask = minijax.jit(lambda v, w: lax.with_sharding_constraint(
        w, NamedSharding(OTHER, P("a"))) + v[0, 0]
    )  # fmt: skip
    np.testing.assert_allclose(ask(cut(NUMBERS, "x"), seven), seven + NUMBERS[0, 0])


@pytest.mark.parametrize("place", ["before", "inside", "branch"])
def test_a_loop_that_talks_beside_a_map_over_another_mesh(place):
    @minijax.shard_map(mesh=OTHER, in_specs=P("a"), out_specs=P("a"))
    def mapped(b):
        return b * 2 + lax.psum(b, "a")

    def f(v):
        if place == "before":
            return lax.fori_loop(0, 3, lambda i, u: u / 2 + u.sum(0), mapped(v) + v)
        if place == "inside":
            return lax.fori_loop(0, 3, lambda i, u: mapped(u) + u.sum(0), v)
        return lax.cond(v.sum() > 0, lambda u: u.sum(0), lambda u: u[0], mapped(v))

    x = cut(NUMBERS, "x")
    np.testing.assert_allclose(minijax.jit(f)(x), f(jnp.asarray(NUMBERS)), 1e-4)
    slope = minijax.grad(lambda v: jnp.sin(f(v)).sum())
    np.testing.assert_allclose(
        minijax.jit(slope)(x), slope(jnp.asarray(NUMBERS)), 1e-3, 1e-3
    )


def test_what_devices_in_step_can_run():
    from minijax.spmd.lockstep_executor import is_lockstep_runnable

    def jaxpr_of(f):
        return minijax.make_jaxpr(f, axis_env=[("x", 2)])(1.0).jaxpr

    groups = [[0], [1]]
    for f in (
        lambda v: lax.psum(v, "x") + lax.axis_index("x"),
        lambda v: lax.fori_loop(0, 3, lambda i, u: u, v),
    ):
        assert is_lockstep_runnable(jaxpr_of(f))
    for f in (
        lambda v: lax.fori_loop(0, 3, lambda i, u: lax.psum(u, "x"), v),
        lambda v: lax.ppermute(v, "x", [(0, 1)]),
        lambda v: lax.all_gather(v, "x"),
        lambda v: lax.psum(v, "x", axis_index_groups=groups),
    ):
        assert not is_lockstep_runnable(jaxpr_of(f))


def test_a_program_that_puts_a_value_on_a_mesh_runs_there():
    to = NamedSharding(MESH, P("x"))
    f = minijax.jit(lambda v: (minijax.device_put(v * 2, to), v.sum(0)))
    y, total = f(jnp.asarray(NUMBERS))
    assert y.sharding == to and total.sharding.mesh == MESH
    np.testing.assert_allclose(y, NUMBERS * 2)
    np.testing.assert_allclose(total, NUMBERS.sum(0), 1e-5)
    slope = minijax.jit(minijax.grad(lambda v: (minijax.device_put(v, to) ** 2).sum()))
    np.testing.assert_allclose(slope(NUMBERS), 2 * NUMBERS, 1e-6)


def test_nans_in_parts_are_found():
    f = minijax.jit(lambda v: jnp.log(v) + v.sum())
    with minijax.debug_nans(True):
        with pytest.raises(FloatingPointError, match="nan.*log"):
            f(cut(NUMBERS, "x"))
        y = f(cut(abs(NUMBERS), "x"))
        assert y.sharding.spec == P("x")
        slope = minijax.grad(lambda v: jnp.sqrt(v * 0).sum())
        with pytest.raises(FloatingPointError):
            minijax.jit(slope)(cut(NUMBERS, None, "x"))
    np.testing.assert_allclose(y, f(jnp.abs(NUMBERS)), 1e-5)


def test_parameters_of_eager_operations_are_told_apart_by_their_bits():
    x = cut(NUMBERS, "x")
    for value in (0.0, -0.0, 0, 1.0, 1):
        found = x.at[jnp.array([9])].get(mode="fill", fill_value=value)
        wanted = np.full((1, NUMBERS.shape[1]), value, np.float32)
        assert np.asarray(found).tobytes() == wanted.tobytes()


def test_donated_and_deleted():
    x = cut(NUMBERS, "x")
    minijax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted() and x.sharding.spec == P("x")
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(0, 3), (2,), (4, 1, 5)])
def test_parts_of_any_dtype_and_shape(dtype, shape):
    numbers = jnp.asarray(np.arange(np.prod(shape)).reshape(shape), dtype)
    x = cut(numbers, "x")
    assert (np.asarray(x) == np.asarray(numbers)).all() and x.dtype == numbers.dtype
    assert x.addressable_shards[1].data.shape == (shape[0] // 2, *shape[1:])
    again = pickle.loads(pickle.dumps(x))
    assert (np.asarray(again) == np.asarray(x)).all()


def test_keys_in_parts():
    keys = cut(minijax.random.split(minijax.random.key(1), 4), "x")
    draws = minijax.vmap(minijax.random.uniform)(keys)
    alone = minijax.vmap(minijax.random.uniform)(
        minijax.random.split(minijax.random.key(1), 4)
    )
    assert (np.asarray(draws) == np.asarray(alone)).all()


def test_the_mesh_of_the_context():
    with minijax.set_mesh(MESH) as mesh:
        assert minijax.sharding.get_mesh() == mesh == MESH
        halves = minijax.jit(lambda v: v, out_shardings=P("x"))(NUMBERS)
        assert halves.sharding.mesh == mesh
    assert minijax.sharding.get_mesh().empty
    with pytest.raises(ValueError, match="traced"):
        minijax.jit(lambda: minijax.set_mesh(MESH))()
    with minijax.sharding.use_abstract_mesh(MESH.abstract_mesh):
        assert minijax.sharding.get_abstract_mesh().shape == {"x": 2}
        assert minijax.sharding.get_mesh().empty


def test_records_compare_by_what_they_hold():
    again = Mesh(minijax.devices(), "x")
    assert again == MESH and hash(again) == hash(MESH) and len({again, MESH}) == 1
    for record in (MESH, P("x", None), NamedSharding(MESH, P("x"))):
        assert pickle.loads(pickle.dumps(record)) == record
    assert AbstractMesh((2,), ("x",)) != MESH.abstract_mesh  # which knows its devices


def test_types_have_the_sharding_of_no_mesh():
    sharding = minijax.typeof(NUMBERS).sharding
    assert sharding.mesh.empty and sharding.spec == P(*[None] * NUMBERS.ndim)
    key = minijax.random.key(0)
    drawn = minijax.random.normal(key, (2,), out_sharding=sharding)
    np.testing.assert_array_equal(drawn, minijax.random.normal(key, (2,)))
    with pytest.raises(AttributeError, match="no attribute 'shard'"):
        getattr(minijax.typeof(NUMBERS), "shard")  # noqa: B009


def test_pictures(capsys):
    minijax.debug.visualize_array_sharding(cut(NUMBERS, None, "x"))
    assert capsys.readouterr().out.splitlines()[1] == "|  CPU 0  |  CPU 1  |"


def test_every_primitive_has_a_sharding_rule_or_the_default():
    [table] = [table for table in rule_tables if table.name == "sharding"]
    assert table.default is not None and len(table) > 90


def test_a_sharding_is_told_when_it_is_known(capsys):
    """At once outside of a jitted function, and in one when it is compiled."""
    told = []

    def f(x):
        y = jnp.sin(x)
        minijax.debug.inspect_array_sharding({"y": y, "sum": y.sum(0)}, callback=tell)
        return y

    def tell(sharding):
        told.append(getattr(sharding, "spec", None))

    x, jitted = cut(jnp.ones((4, 4)), "x"), minijax.jit(f)
    minijax.debug.inspect_array_sharding(x, callback=tell)
    assert told.pop() == P("x") and not told
    jitted.lower(x)
    assert not told
    for _ in range(2):
        np.testing.assert_array_equal(jitted(x), jnp.sin(x))
        assert jitted(x).sharding.spec == P("x")
    assert told == [P(), P("x")]  # keys in order
    told.clear()
    minijax.jit(minijax.grad(lambda x: f(x).sum()))(x)
    assert told == [P(), P("x")]
    told.clear()
    minijax.jit(minijax.vmap(f))(np.ones((2, 3)))
    minijax.jit(f, backend="python")(np.ones((2, 3)))
    assert told == [None] * 4
    minijax.jit(lambda x: minijax.debug.visualize_array_sharding(x + 1))(x)
    assert "CPU 1" in capsys.readouterr().out


def test_a_specification_is_put_on_the_mesh_around():
    with pytest.raises(ValueError, match="device_put requires a non-empty mesh"):
        minijax.device_put(jnp.arange(4.0), P("x"))
    tree = {"a": jnp.arange(4.0), "b": (jnp.ones(2), 3.0)}
    with minijax.set_mesh(MESH):
        there = minijax.device_put(tree, {"a": P("x"), "b": P()})
        inside = minijax.jit(lambda x: minijax.device_put(x, P("x")))(tree["a"])
        with pytest.raises(ValueError, match="y"):
            minijax.device_put(tree["a"], P("y"))
        mixed = minijax.device_put([1.0, 2.0], [P(), None])
    assert there["a"].sharding == NamedSharding(MESH, P("x"))
    assert there["b"][1].sharding == mixed[0].sharding == NamedSharding(MESH, P())
    assert np.array_equal(there["a"], inside)


def test_what_is_no_array_goes_to_each_device_as_it_is():
    def body(what, shape, x):
        assert what is object and shape == (1, 2)
        return jnp.reshape(x, shape)

    how = {"mesh": MESH, "out_specs": P("x")}
    f = minijax.shard_map(body, in_specs=(None, None, P("x")), **how)
    assert np.array_equal(f(object, (1, 2), jnp.arange(4.0)), [[0, 1], [2, 3]])
    specs = ({"a": P("x"), "b": None}, None)
    f = minijax.shard_map(lambda t, y: t["a"] * y, in_specs=specs, **how)
    assert f({"a": jnp.ones(4), "b": "text"}, 2.0).tolist() == [2] * 4
    slope = minijax.grad(lambda y: f({"a": jnp.ones(4), "b": "text"}, y).sum())
    assert slope(jnp.float32(2)) == 4


def test_a_dtype_of_64_bits_means_32_without_x64():
    sharding = minijax.sharding.SingleDeviceSharding(minijax.devices()[0])
    with pytest.warns(UserWarning, match="float64"):
        x = minijax.make_array_from_callback(
            (2,), sharding, lambda i: np.ones(2)[i], dtype="float64"
        )
    assert x.dtype == np.float32


def test_data_of_a_process_on_a_device():
    device = minijax.devices()[-1]
    found = minijax.make_array_from_process_local_data(device, np.arange(3.0))
    assert found.devices() == {device} and found.tolist() == [0, 1, 2]
