"""How long ranks take: sums of arrays, and a step of training with and without overlap.

    mpiexec -n 2 python -m tests.rank_times            sums, then the step
    mpiexec -n 2 python -m tests.rank_times 512 6 512  width, layers, examples of each

Rank 0 prints. As root, ranks of one machine can have a slow link between them, in a
network of their own:

    unshare -n sh
    ip link set lo mtu 9000 up
    ip link add net0 type veth peer name net1
    ip addr add 10.9.0.1/24 dev net0
    ip link set net0 up; ip link set net1 up
    tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 400ms
    export MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp MPIR_CVAR_NOLOCAL=1
    export MINIJAX_NUM_THREADS=1
    mpiexec -n 2 python -m tests.rank_times 512 6 512
"""

import sys
from functools import partial
from time import perf_counter, process_time

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import P, config, grad, jit, lax, make_mesh, pmap, shard_map
from minijax.distributed.processes import allreduce, current_world
from minijax.sharding import NamedSharding


def say(text):
    if minijax.process_index() == 0:
        print(text, flush=True)


def microseconds(call, times, rounds=15):
    """The least and the median of the means of some rounds."""
    found = []
    for _ in range(rounds):
        start = perf_counter()
        for _ in range(times):
            call()
        found.append((perf_counter() - start) / times * 1e6)
    return f"{min(found):9.1f} {np.median(found):9.1f}"


def sums(mesh, n):
    engine = current_world().engine(tuple(range(n)))
    add = lambda v: lax.psum(v, "i")  # noqa: E731
    for size, times in ((8, 200), (1 << 16, 60), (1 << 20, 8)):
        rows = NamedSharding(mesh, P("i"))
        x, local = np.ones(size, "f4"), np.ones((1, size), "f4")
        a = minijax.make_array_from_process_local_data(rows, x)
        f = shard_map(add, mesh=mesh, in_specs=P("i"), out_specs=P())
        ways = {
            "engine": partial(allreduce, engine, x, np.add),
            "shard_map": partial(f, a),
            "jit": partial(jit(f), a),
            "pmap": partial(pmap(add, "i"), local),
        }
        for name, call in ways.items():
            say(f"{size:8} floats, {name:10} {microseconds(call, times)} µs")


def steps(mesh, n, width=512, layers=6, examples=512, times=12):
    """A data-parallel step: milliseconds, those spent waiting, and those of a core."""
    rng, rank = np.random.default_rng(0), minijax.process_index()
    first = rng.normal(size=(layers, width, width)).astype("f4") / width**0.5
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("i"))
    ws = [minijax.device_put(w, whole) for w in first]
    data = np.random.default_rng(rank).normal(size=(examples, width)).astype("f4")
    x = minijax.make_array_from_process_local_data(rows, data)

    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    def program(exchange):
        def step(ws, x):
            slopes = exchange(grad(loss)(ws, x))
            return [w - 0.1 * s for w, s in zip(ws, slopes)]

        return jit(
            shard_map(
                step, mesh=mesh, in_specs=(P(), P("i")), out_specs=P(), check_vma=False
            )
        )

    ways = {"alone": (True, lambda s: s)}
    ways |= {
        name: (on, lambda s: lax.pmean(s, "i"))
        for name, on in (("blocking", False), ("overlapped", True))
    }
    programs, results, found = {}, {}, {name: [] for name in ways}
    for name, (on, exchange) in ways.items():
        config.update("minijax_overlap", on)
        programs[name] = program(exchange)
        results[name] = [np.asarray(w) for w in programs[name](ws, x)]
    watch, comm = current_world().watchdog, current_world().comm
    for _ in range(times):
        for name, f in programs.items():
            comm.Barrier()
            before = perf_counter(), watch.seconds, process_time()
            f(ws, x)
            after = perf_counter(), watch.seconds, process_time()
            found[name].append(np.subtract(after, before) * 1e3)
    same = map(np.array_equal, results["blocking"], results["overlapped"])
    say(f"the same numbers: {all(same)}; milliseconds, least and median")
    for name, rows in found.items():
        least, middle = np.min(rows, 0), np.median(rows, 0)
        shown = [f"{a:7.1f} {b:7.1f}" for a, b in zip(least, middle)]
        say(f"{name:10}  step {shown[0]}  waiting {shown[1]}  core {shown[2]}")


def main():
    minijax.distributed.initialize()
    n, sizes = minijax.device_count(), map(int, sys.argv[1:])
    mesh = make_mesh((n,), ("i",))
    if len(sys.argv) == 1:
        sums(mesh, n)
    steps(mesh, n, *sizes)


if __name__ == "__main__":
    main()
