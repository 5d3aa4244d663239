"""Meshes, shardings, arrays in parts and programs on them, beside JAX, on 8 devices.

Both libraries run in a process of their own, since the number of devices is fixed when
one is first used.
"""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

TEXTS = """
    P('x', None), P(('x',), ()), P(), P('x') + P('y'), P('x') == P('x', None)
    mesh, str(mesh), mesh.shape, mesh.axis_types, mesh.devices.shape, mesh.size
    mesh.abstract_mesh
    top.sharding.AbstractMesh((2, 4), ('x', 'y'))
    S('x'), S('x', 'y'), S(('x', 'y'), None), S(None)
    S('x').shard_shape((8, 4)), S(('x', 'y')).shard_shape((8,))
    S(None, 'y').devices_indices_map((8, 4))
    S(('y', 'x')).devices_indices_map((8, 4))
    S('y', 'x').addressable_devices_indices_map((8, 4))
    S('x').is_fully_replicated, S().is_fully_replicated, S(None).is_fully_replicated
    S('x').is_equivalent_to(S('x', None), 2), S('x').is_equivalent_to(S('y'), 2)
    S('x') == S('x', None), hash(S('x')) == hash(S('x'))
    A('x', 'y').addressable_shards, A('y').addressable_shards
    [s.replica_id for s in A('y').addressable_shards]
    A('x').is_fully_addressable, A('x').committed, A('x').device
    A().is_fully_replicated
    len(A('x').devices()), str(A('x')), A('x').nbytes, A('x').is_deleted()
    A('x').addressable_data(3), A('x').addressable_shards[2].data.sharding
    top.sharding.get_mesh(), top.sharding.get_abstract_mesh()
    type(pickle.loads(pickle.dumps(A('x'))).sharding).__name__
    top.typeof(A('x')), top.ShapeDtypeStruct((8, 4), 'float32', sharding=S('x'))
    top.make_jaxpr(top.jit(lambda v: v * 2, in_shardings=S('y')))(U)
    top.make_jaxpr(lambda v: top.lax.with_sharding_constraint(v, S('x')) * 2)(U)
""".strip().split("\n")

VALUES = """
    top.jit(mapped(lambda v: v * 2))(U)
    top.jit(top.grad(lambda v: (mapped(lambda v: v * v)(v) * 3).sum()))(U)
    top.jit(lambda v: top.lax.fori_loop(0, 3, lambda i, u: mapped(jnp.sin)(u), v))(U)
    top.jit(invariant('x', tiled=True))(U).tolist()
    top.jit(invariant('y', axis=1))(U).tolist()
    top.jit(invariant(('x', 'y'), tiled=True))(U > 3).tolist()
    top.jit(top.grad(lambda v: (invariant('x', tiled=True)(v) * U).sum()))(U).tolist()
    A('x', 'y') + A('y', 'x')
    A('x') + A('y')
    A('x') + A(None, 'x')
    A('x') + A(None, 'y')
    A(('x', 'y')) + A('x')
    A('x', 'y') + A('y')
    A('x') @ A('x')
    A('x', 'y') @ A('x', 'y').T
    A('x', 'y') @ A('x', 'y')
    A(None, 'x') @ A('x')
    A('x', 'y') @ A('y')
    A() @ A(None, 'x')
    A('x', 'y').T + U
    A('x', 'y').sum(), A('x', 'y').max(0), A('x', 'y').argmax(1), A('x', 'y').prod(0)
    A('x', 'y').reshape(64), A('x', 'y').reshape(4, 2, 8)
    A(('x', 'y')).reshape(4, 2, 8)
    A('x', 'y').reshape(2, 4, 8), A(None, 'x').reshape(8, 4, 2)
    A('x', 'y')[None], A('x', 'y')[0], A('x', 'y')[2:6], A('x', 'y')[::-1]
    jnp.cumsum(A('x', 'y'), 1), jnp.sort(A('x', 'y'), 0), jnp.pad(A('x', 'y'), 1)
    jnp.concatenate([A('x'), A('x')], 1), jnp.stack([A('x'), A('x')])
    jnp.where(A('x') > 1, A(None, 'y'), 0.0), top.nn.softmax(A('x', 'y'))
    top.grad(lambda w: ((A('x') @ w) ** 2).sum())(A(None, 'y'))
    top.vmap(lambda v: v.sum())(A('x', 'y'))
    top.jit(lambda v: (v * 2) @ v.T)(A('x', 'y'))
    top.jit(lambda v: v)(A('x', 'y'))
    top.jit(lambda v: v * 2, in_shardings=S('y'))(U)
    top.jit(lambda v: v * 2, out_shardings=S('y'))(A('x'))
    top.jit(lambda v: v * 2, in_shardings=S('x'), out_shardings=S(None, 'y'))(U)
    top.jit(lambda v: top.lax.with_sharding_constraint(v, S('x')))(U)
    top.jit(lambda v: top.lax.with_sharding_constraint(v, S('x')))(jnp.arange(7))
    top.lax.with_sharding_constraint(U, S('x'))
    top.device_put(A('x'), S('y')), top.device_put(A('x'), top.devices()[2])
    top.device_put({'a': np.arange(4), 'b': np.arange(8)}, S('x'))['b']
    jnp.zeros((8, 4), device=S('x')), jnp.arange(8, device=S('x'))
    top.make_array_from_callback((8, 4), S('x'), lambda i: np.ones((8, 4), 'f')[i])
    top.make_array_from_single_device_arrays((8, 8), S('x'), shards(A('x'))[::-1])
    top.make_array_from_process_local_data(S('x'), np.arange(8.0))
    top.make_array_from_process_local_data(S('x'), [np.arange(8.0), U], [(8,), None])
    top.make_array_from_process_local_data({'a': S('y'), 'b': S('x')}, {'a': U, 'b': U})
    top.random.normal(top.random.key(0), (8, 8)) + A('x')
    top.jit(lambda v: top.lax.scan(lambda c, r: (c + r, c * r), v[0], v))(A('x', 'y'))
    top.jit(lambda v: top.lax.fori_loop(0, 3, lambda i, u: u + v, v))(A(('x', 'y')))
    top.jit(lambda v: top.lax.scan(lambda c, _: (c + v, 0), 0 * v, None, 3)[0])(A('x'))
    top.jit(lambda v: top.lax.while_loop(lambda c: c.max() < 9, jnp.exp, v))(A('y'))
    top.jit(lambda v: top.lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v))(A('x', 'y'))
    top.jit(lambda v: v[:, jnp.array([1, 5])] + v.at[3].set(0.0)[:, :2])(A('x'))
    top.jit(top.vmap(lambda r: r[jnp.argmax(r)]))(A('x', 'y'))
    top.jit(lambda v: top.lax.dynamic_slice_in_dim(v, 3, 2, 1))(A('x', 'y'))
    top.jit(lambda v: top.lax.dynamic_update_slice_in_dim(v, v[:2], 3, 0))(A('x', 'y'))
    top.jit(lambda v: v.at[:, jnp.array([1, 2])].add(1.0))(A('x', 'y'))
    top.jit(lambda v: mapped(lambda b: b / top.lax.psum(b.sum(), 'x'))(v) * 2)(A('x'))
    top.jit(top.grad(lambda v: (mapped(lambda b: b * b)(v) * v).sum()))(A('x', 'y'))
    top.jit(top.vmap(turns))(A('x', 'y')), top.jit(top.vmap(top.vmap(turns)))(A('x'))
    top.jit(lambda v, u: v.at[rows].add(u) * 2)(A('x'), A(None, 'x')[:3])
    top.jit(lambda v, u: v.at[rows].set(u) * 2)(A('y'), A(None, 'y')[:3])
    top.jit(lambda v, u: top.lax.dynamic_update_slice(v, u, (2, 0)))(A('x'), A('y').T)
    top.grad(lambda v: (stacked(v) * jnp.arange(32.0)).sum())(jnp.arange(8.0))
    top.jit(top.grad(lambda v: (stacked(v) ** 3).sum()))(jnp.arange(8.0))
    top.jvp(stacked, (jnp.arange(8.0),), (jnp.ones(8),))
    top.jit(lambda v: v * 2 + v.sum(), out_shardings=O('a'))(A('x', 'y'))
    top.jit(lambda v: (v, v @ v), out_shardings=(O(None, 'a'), O('b')))(A('x', 'y'))
    top.jit(lambda v: (v, v @ v), out_shardings=(Q('x'), Q('y')))(A('x', 'y'))
    top.jit(lambda v: v * 2, in_shardings=O('a'), out_shardings=S('y'))(U)
    top.jit(lambda v: (told(v.sum()), v * 2)[1], out_shardings=S('y'))(A('x', 'y'))
    top.jit(lambda v: (told(v.sum()), v * 2)[1], out_shardings=O('a'))(A('x', 'y'))
    top.jit(lambda v: top.jit(lambda v: v * 3, out_shardings=S('y'))(v))(A('x'))
    whole(top.jit(lambda v: fori(0, 3, lambda i, u: u / 2 + u.sum(0), on_O(v)))(A('x')))
    whole(top.jit(lambda v: fori(0, 3, lambda i, u: u.sum(0) + on_O(u), v))(A('x')))
    whole(top.jit(lambda v: jnp.sin(on_O(v)) + v.sum(0))(A('x', 'y')))
    explicit(lambda: top.reshard(U, P('x')))
    explicit(lambda: top.sharding.reshard(top.reshard(U, P('x')), P(None, 'y')))
    explicit(lambda: top.jit(lambda v: top.reshard(v * 2, P('x')))(U))
    explicit(lambda: top.grad(lambda v: (top.reshard(v, P('x')) ** 2).sum())(U))
    explicit(lambda: top.vmap(lambda v: top.reshard(v * 2, P('x')))(U))
    explicit(lambda: top.reshard(U, top.NamedSharding(E, P('y', 'x'))))
    explicit(lambda: top.reshard({'a': U, 'b': U}, {'a': P('x'), 'b': P()})['b'])
    explicit(lambda: top.reshard([U, U], P('y'))[1])
""".strip().split("\n")

ERRORS = """
    A('z')
    A('x', 'x')
    A('x', 'y', 'x')
    A('x', shape=(6, 2))
    A('x', shape=())
    A('x') + top.device_put(1.0, top.devices()[3])
    top.jit(lambda v, w: v + w)(A('x'), top.device_put(1.0, top.devices()[3]))
    top.jit(lambda v: v * 2, in_shardings=S('y'))(A('x'))
    top.jit(lambda v: v * 2, in_shardings=S('y'))(jnp.arange(7))
    top.jit(lambda v: v * 2, in_shardings=S('x', 'y'))(jnp.arange(8))
    top.jit(lambda v: v * 2, out_shardings=S('y'))(jnp.arange(7))
    top.jit(lambda v: v * 2, in_shardings=P('x'))(U)
    top.jit(mapped(jnp.sin))(top.device_put(U, top.devices()[3]))
    top.lax.with_sharding_constraint(U, P('x'))
    top.lax.with_sharding_constraint(U[:7], S('x'))
    top.make_mesh((16,), ('x',))
    top.make_mesh((2, 2), ('x',))
    top.sharding.Mesh(np.array(top.devices()), ('x', 'y'))
    top.sharding.Mesh(np.array(top.devices()), (None,))
    top.set_mesh(3)
    top.sharding.NamedSharding(top.sharding.AbstractMesh((2,), ('x',)), P()).device_set
    top.make_array_from_callback((8, 4), S('x'), lambda i: np.ones((2, 3)))
    top.make_array_from_callback((8, 4), P('x'), lambda i: np.ones((2, 4)))
    top.make_array_from_single_device_arrays((8, 8), S('x'), shards(A('x'))[:3])
    top.make_array_from_single_device_arrays((8, 8), S('x'), A('x'))
    A('x').__dlpack_device__()
    deleted(A('x')).addressable_shards
    deleted(A('x')) + 1
    explicit(lambda: top.reshard(U, None))
    top.reshard(U, P('x'))
    explicit(lambda: top.reshard(U, P('z')))
    explicit(lambda: top.reshard(U, U.sharding))
""".strip().split("\n")

PROGRAMS = [line.strip() for line in [*TEXTS, *VALUES, *ERRORS]]


def surroundings(top):
    """Return the names that programs use, of one of the libraries."""
    P, devices = top.sharding.PartitionSpec, np.array(top.devices()).reshape(4, 2)
    mesh = top.sharding.Mesh(devices, ("x", "y"))

    def named(*spec):
        return top.sharding.NamedSharding(mesh, P(*spec))

    def array(*spec, shape=(8, 8)):
        numbers = np.arange(np.prod(shape), dtype="float32").reshape(shape) % 7
        return top.device_put(numbers, named(*spec))

    def deleted(x):
        x.delete()
        return x

    def mapped(f):
        return top.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def invariant(names, **how):
        gather = partial(top.lax.all_gather, axis_name=names, to="invarying", **how)
        return top.shard_map(gather, mesh=mesh, in_specs=P(names), out_specs=P())

    def stacked(v):
        how = {"mesh": mesh, "in_specs": P(None), "out_specs": P("x")}
        return top.shard_map(lambda b: b * 2, **how)(v)

    def turns(v):
        go_on = lambda c: c.sum() < 50  # noqa: E731
        return top.lax.while_loop(go_on, lambda c: c + 3, v)

    def on(*names):
        other = top.sharding.Mesh(np.array(top.devices()).reshape(2, 4), names)
        return lambda *spec: top.sharding.NamedSharding(other, P(*spec))

    O, Q = on("a", "b"), on("x", "y")  # noqa: E741

    def on_O(v):
        def body(b):
            return top.lax.psum(b, "a") + b + top.lax.axis_index("a")

        how = {"in_specs": P("a"), "out_specs": P("a")}
        return top.shard_map(body, mesh=O().mesh, **how)(v)

    how = {"axis_types": (top.sharding.AxisType.Explicit,) * 2}
    typed = top.make_mesh((4, 2), ("x", "y"), **how)

    def explicit(f):
        with top.set_mesh(typed):
            found = f()
        parts = [*found.sharding.spec, None, None, None][: found.ndim]
        return str(parts), np.asarray(found).tolist()

    return {
        "E": typed, "explicit": explicit, "stacked": stacked, "turns": turns,
        "rows": top.numpy.array([1, 4, 6]), "fori": top.lax.fori_loop,
        "O": O, "Q": Q, "on_O": on_O, "whole": lambda x: top.numpy.asarray(np.array(x)),
        "told": lambda x: top.debug.callback(lambda x: None, x),
        "top": top, "mapped": mapped, "invariant": invariant, "jnp": top.numpy,
        "np": np, "P": P,
        "S": named, "A": array,
        "U": top.numpy.arange(64.0).reshape(8, 8), "mesh": mesh, "deleted": deleted,
        "shards": lambda x: [shard.data for shard in x.addressable_shards],
        "pickle": __import__("pickle"),
    }  # fmt: skip


def described(x):
    """Return what is compared of a result."""
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return list(map(described, x))
    if hasattr(x, "aval") and hasattr(x, "sharding"):
        return [repr(x.sharding), str(x.dtype), np.asarray(x).tolist()]
    return repr(x)


def beside(tops):
    """Return what each program gives in each library: a result, or an error's class."""
    found = {}
    for names in map(surroundings, tops):
        for program in PROGRAMS:
            try:
                result = described(eval(program, names))
            except Exception as error:
                result = f"{type(error).__name__}"
            found.setdefault(program, []).append(result)
    return found


@pytest.fixture(scope="module")
def results():
    eight = "--xla_force_host_platform_device_count=8"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {eight}"
    script = "from tests.oracle import test_shardings as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300,
        env={**os.environ, "XLA_FLAGS": flags},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Print what the programs give, as JSON."""
    import jax

    import minijax

    print(json.dumps(beside([jax, minijax])))


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_say_the_same(results, program):
    theirs, ours = results[program]
    fails = isinstance(theirs, str) and theirs.endswith("Error")
    assert fails == (program in [line.strip() for line in ERRORS])
    same_numbers(theirs, ours)


def same_numbers(theirs, ours):
    """Compare results; numbers may differ in their last digits."""
    if isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4)
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours)
        for pair in zip(theirs, ours):
            same_numbers(*pair)
    else:
        assert ours == theirs
