"""Programs for ranks: each case prints the same on one process and on several.

    python -m tests.rank_programs CASE          JAX_NUM_CPU_DEVICES virtual devices
    mpiexec -n 4 python -m tests.rank_programs CASE

The first process prints one line of JSON.
"""

import json
import os
import sys
import time
from functools import partial

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import P, config, grad, jit, lax, make_mesh, pmap, shard_map, vmap
from minijax.distributed import latency_hiding as schedules
from minijax.experimental import multihost_utils
from minijax.sharding import NamedSharding

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def whole(x):
    """The numbers of an array that may span processes, as lists."""
    return np.asarray(multihost_utils.process_allgather(x, tiled=True)).tolist()


def line_of_all(name="i"):
    return make_mesh((minijax.device_count(),), (name,))


def spread(x, mesh, *parts):
    return minijax.device_put(x, NamedSharding(mesh, P(*parts)))


@case
def collectives():
    """Every collective, plain and below derivatives, batches and jit."""
    mesh, n = line_of_all(), minijax.device_count()
    ring = [(j, (j + 1) % n) for j in range(n)]
    part = ring[:-1]
    programs = {
        "sum": lambda v: v / (1.0 + lax.psum(v * v, "i")),
        "mean": lambda v: v - lax.pmean(v, "i"),
        "max": lambda v: v * lax.pmax(lax.stop_gradient(v), "i"),
        "gather": lambda v: lax.all_gather(v, "i").sum(0) * v,
        "tiled": lambda v: lax.all_gather(v, "i", tiled=True)[:n] * v,
        "scatter": lambda v: v[:1] * lax.psum_scatter(v, "i"),
        "exchange": lambda v: lax.all_to_all(jnp.sin(v), "i", 0, 0),
        "turn": lambda v: lax.ppermute(v, "i", ring) * v,
        "part": lambda v: lax.ppermute(v, "i", part) + v,
        "index": lambda v: v * lax.axis_index("i"),
        "loop": lambda v: lax.scan(
            lambda c, r: (jnp.sin(c) + lax.psum(c * r, "i"), c), v, v
        )[0],
    }
    ways = {
        "value": lambda f: f,
        "grad": lambda f: grad(lambda v: jnp.sin(f(v)).sum()),
        "vmap": lambda f: lambda v: vmap(f)(jnp.stack([v, 2 * v]))[1],
    }
    x = spread(np.sin(np.arange(n * n, dtype="f4")), mesh, "i")
    found = {}
    for name, f in programs.items():
        for way, transform in ways.items():
            run = shard_map(
                transform(f), mesh=mesh, in_specs=P("i"), out_specs=P("i"),
                check_vma=False,
            )  # fmt: skip
            found[f"{name}, {way}"] = whole(jit(run)(x))
    return found


@case
def dtypes():
    """Sums, maxima and moves of each dtype; NaN; arrays without axes."""
    mesh, n, found = line_of_all(), minijax.device_count(), {}
    cut = partial(shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    ring = [(j, (j + 1) % n) for j in range(n)]
    for dtype in "float32 float16 bfloat16 int32 int8 uint8 bool complex64".split():
        x = spread(jnp.arange(2 * n).astype(dtype), mesh, "i")
        for name, f in {
            "sum": lambda v: v + lax.psum(v, "i").astype(v.dtype),
            "turn": lambda v: lax.ppermute(v, "i", ring),
            "max": lambda v: v if v.dtype == "complex64" else v + lax.pmax(v, "i"),
        }.items():
            values = cut(f)(x)
            found[f"{name} {values.dtype}"] = whole(values.astype("complex64").real)
    odd = spread(np.float32([np.nan, *range(1, n)]), mesh, "i")
    found["nan"] = str(whole(cut(lambda v: v + lax.pmax(v, "i"))(odd)))
    alone = shard_map(
        lambda v: lax.psum(v.sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    found["no axes"] = float(alone(odd[1:].sum() * jnp.ones(n)))
    return found


@case
def sharded():
    """jit of arrays in parts, on a mesh of two axes, and back to the host."""
    n = minijax.device_count()
    mesh = make_mesh((n // 2, 2), ("x", "y"))
    rng = np.random.default_rng(0)
    a = spread(rng.normal(size=(8, 4)).astype("f4"), mesh, "x", "y")
    b = spread(rng.normal(size=(4, 8)).astype("f4"), mesh, "y", None)
    turned = jit(jnp.transpose, out_shardings=NamedSharding(mesh, P("x", "y")))
    weights = jnp.ones(4)
    slope = jit(lambda w, a: grad(lambda w: jnp.tanh(a @ w).sum())(w))
    return {
        "product": whole(a @ b),
        "sum": float(jit(lambda a, b: jnp.sin(a @ b).sum())(a, b)),
        "slope": whole(slope(weights, a)),
        "spec": str((a @ b).sharding.spec),
        "turned": whole(turned(b @ a)),
        "moved": whole(minijax.device_put(a, NamedSharding(mesh, P("y", "x")))),
        "rows": whole(a[1:3] + 1),
        "softmax": whole(jit(lambda a: minijax.nn.softmax(a, axis=1))(a)),
        "shards": len(a.global_shards),
    }


def layers(rng):
    shapes = (8, 16), (16,), (16, 4), (4,)
    return [rng.normal(size=shape).astype("f4") * 0.3 for shape in shapes]


def network(params, x):
    w, b, v, c = params
    return jnp.tanh(x @ w + b) @ v + c


@case
def training():
    """One network, its examples cut along `data` and its weights along `model`."""
    n, rng, found = minijax.device_count(), np.random.default_rng(1), {}
    x, y = (rng.normal(size=(16, k)).astype("f4") for k in (8, 4))
    first = layers(rng)

    def loss(params, x, y):
        return jnp.mean((network(params, x) - y) ** 2)

    @jit
    def step(params, x, y):
        value, slopes = minijax.value_and_grad(loss)(params, x, y)
        return value, [p - 0.1 * s for p, s in zip(params, slopes)]

    meshes = {
        "data": (make_mesh((n,), ("data",)), P("data"), [P()] * 4),
        "model": (
            make_mesh((n,), ("model",)),
            P(),
            [P(None, "model"), P("model"), P("model"), P()],
        ),
    }
    if n > 1:
        both = make_mesh((n // 2, 2), ("data", "model"))
        meshes["both"] = both, P("data"), meshes["model"][2]
    for name, (mesh, rows, specs) in meshes.items():
        params = [spread(p, mesh, *spec) for p, spec in zip(first, specs)]
        data = [spread(z, mesh, *rows) for z in (x, y)]
        values = []
        for _ in range(5):
            value, params = step(params, *data)
            values.append(float(value))
        found[name] = values, whole(params[0])[0][:4]
    return found


@case
def parts():
    """Arrays that are made in parts, and what is known of those of others."""
    mesh, n = line_of_all(), minijax.device_count()
    rows = NamedSharding(mesh, P("i"))
    full = np.arange(6 * n, dtype="f4").reshape(2 * n, 3)
    asked = []
    made = minijax.make_array_from_callback(
        full.shape, rows, lambda i: asked.append(i) or full[i]
    )
    here = [shard.index for shard in made.addressable_shards]
    assert len(asked) == len(here) == minijax.local_device_count()
    local = np.concatenate([full[i] for i in here])
    again = minijax.make_array_from_process_local_data(rows, local)
    given = minijax.make_array_from_process_local_data(rows, full, full.shape)
    for shard in made.global_shards:
        assert (shard.data is None) == (not shard.device.is_local)
    spans = minijax.process_count() > 1
    assert made.is_fully_addressable != spans
    assert minijax.local_devices()[0].process_index == minijax.process_index()
    assert len(minijax.devices()) == n
    if spans:
        refused = [np.asarray, float, lambda x: pmap(jnp.sin)(np.ones((2, 2)))]
        for f in refused:
            try:
                f(made)
            except (RuntimeError, TypeError, ValueError):
                continue
            raise AssertionError("a part of an array was taken for all of it")
        assert repr(made) == f"Array(shape={full.shape}, dtype=float32)"
    return [whole(made), whole(again), whole(given), whole(made - again)]


@case
def mapped():
    """pmap: each process brings the examples of its own devices."""
    n, mine = minijax.device_count(), minijax.process_index()
    full = np.arange(3.0 * n, dtype="f4").reshape(n, 3)
    one = minijax.process_count() > 1
    local = full[mine : mine + 1] if one else full
    f = pmap(lambda v, w: (v * w / lax.psum(v, "i"), v.sum()), "i", in_axes=(0, None))
    rows, sums = f(local, np.float32(2))
    again, _ = f(rows, np.float32(2))
    assert rows.shape == local.shape and rows.is_fully_addressable
    found = [multihost_utils.process_allgather(x, tiled=True) for x in (rows, again)]
    return [x.tolist() for x in found] + [np.asarray(sums).shape == local.shape[:1]]


def _apart(program):
    try:
        program()
    except ValueError as error:
        text = str(error)
        return "rank 0" in text and "rank 1" in text
    return False


@case
def differing():
    """Programs, shapes and orders that differ are a ValueError on every rank."""
    mesh, me = line_of_all(), minijax.process_index()
    scale = 2.0 + (me == 1)
    x = spread(np.ones(minijax.device_count(), "f4"), mesh, "i")
    cut = partial(shard_map, mesh=mesh, in_specs=P("i"), out_specs=P())
    refused = [
        _apart(lambda: cut(lambda v: lax.psum(v * scale, "i"))(x)),
        _apart(lambda: jit(lambda v: (v * scale).sum())(x)),
        _apart(lambda: multihost_utils.sync_global_devices(f"place {me == 1}")),
        _apart(lambda: multihost_utils.process_allgather(np.ones(2 + (me == 1)))),
    ]
    cached = [cut(lambda v, k=k: lax.psum(v * k, "i")) for k in (2.0, 3.0, 4.0)]
    for f in cached:
        f(x)
    refused.append(_apart(lambda: cached[me == 1](x)))
    after = float(cached[0](x)[0])
    everywhere = multihost_utils.process_allgather(np.array(refused))
    return [bool(everywhere.all()), after]


@case
def strangers():
    """One process repeats its program, and the other one begins another."""
    mesh, me = line_of_all(), minijax.process_index()
    x = spread(np.ones(minijax.device_count(), "f4"), mesh, "i")
    cut = partial(shard_map, mesh=mesh, in_specs=P("i"), out_specs=P())
    cached = [cut(lambda v, k=k: lax.psum(v * k, "i")) for k in (2.0, 3.0)]
    for f in cached:
        f(x)
    cached[me](x)


@case
def overlapped():
    """Sums that run meanwhile, in buckets of several sizes, have the same numbers."""
    mesh, n = line_of_all(), minijax.device_count()
    rng = np.random.default_rng(2)
    ws = [rng.normal(size=(16, 16)).astype("f4") / 4 for _ in range(4)]
    x = spread(rng.normal(size=(4 * n, 16)).astype("f4"), mesh, "i")

    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x**2).sum()

    def step(ws, x):
        slopes = grad(loss)(ws, x)
        slopes = [slopes[0].astype("bfloat16"), *slopes[1:]]
        total, most = lax.psum(slopes, "i"), lax.pmax(slopes[2:], "i")
        half = lax.all_gather(total[1], "i").sum(0) + most[0]
        return [w - 0.1 * s for w, s in zip(ws, [*total[:3], most[1]])], half

    found, again = [], []
    for on, size in ((False, 1), (True, 1), (True, 1500), (True, 2**20)):
        config.update("minijax_overlap", on)
        schedules.BUCKET = size
        run = shard_map(
            lambda ws, x: step(ws, x), mesh=mesh, in_specs=(P(), P("i")),
            out_specs=P(), check_vma=False,
        )  # fmt: skip
        out, half = jit(run)(ws, x)
        out, half = jit(run)(out, x)
        found.append([np.asarray(y, "f4") for y in (*out, half)])
    for other in found[1:]:
        again.append(all(map(np.array_equal, found[0], other)))
    return [y.tolist() for y in found[0][1:]], again


@case
def raises():
    if minijax.process_index() == 1:
        raise ValueError("a fault in rank 1")
    multihost_utils.sync_global_devices("never")


@case
def dies():
    if minijax.process_index() == 1:
        os.kill(os.getpid(), 9)
    multihost_utils.sync_global_devices("never")


@case
def absent():
    config.update("minijax_collective_timeout", 1.0)
    if minijax.process_index() == 1:
        time.sleep(30)
    multihost_utils.sync_global_devices("never")


@case
def twice():
    """initialize can be called once; shutdown ends it."""
    try:
        minijax.distributed.initialize()
    except RuntimeError as error:
        found = [str(error)]
    found.append(minijax.distributed.is_initialized())
    minijax.distributed.shutdown()
    return [*found, minijax.distributed.is_initialized()]


def main():
    minijax.distributed.initialize()
    index = minijax.process_index()
    found = CASES[sys.argv[1]]()
    if index == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
