"""Replicas beside JAX's: sums, gradients of a network, calls; on 1, 2, 4, 8 devices.

Each library has processes of its own with eight devices of the CPU, which take turns;
of all calls of all its processes, the fastest counts. A ratio is JAX's time / ours.

python benchmarks/device_rows.py                      # the table
python benchmarks/device_rows.py --only psum --rounds 5 --json FILE
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# For each row, JAX's time / ours that has to be reached with 1, 2, 4, 8 devices.
MUST = {
    "psum of 8": (1, 5, 4, 3), "psum of 65536": (2, 2.5, 2.5, 2.5),
    "psum of 1048576": (1.1, 1.4, 1.4, 1.4), "step of a network": (1, 1, 1.1, 1.1),
    "psum of a tree of 20": (1, 1, 1, 1), "shard_map in jit": (1, 1, 1, 1),
    "jit of arrays in parts": (1, 1, 1, 1),
}  # fmt: skip
DEVICES = 1, 2, 4, 8
WAYS = {  # a name: its library, and what is in the environment
    "jax": ("jax", {}), "ours": ("minijax", {}),
    "in Python": ("minijax", {"MINIJAX_EXCHANGE": "0"}),
}  # fmt: skip


def work(top, n):
    """Yield names and functions without arguments, for `n` devices of a library."""
    jnp, lax, P = top.numpy, top.lax, top.sharding.PartitionSpec
    rng = np.random.default_rng(0)
    total = top.pmap(lambda v: lax.psum(v, "i"), "i")
    for size in (8, 65536, 1048576):
        blocks = total(jnp.ones((n, size), "float32"))
        yield f"psum of {size}", lambda blocks=blocks: total(blocks)

    def loss(w, x, y):
        hidden = jnp.tanh(x @ w[0] + w[1])
        return ((hidden @ w[2] + w[3] - y) ** 2).mean()

    @top.pmap
    def start(i):
        shapes = (256, 512), (512,), (512, 10), (10,)
        return [jnp.full(shape, 0.01, "float32") for shape in shapes]

    def step(w, x, y):
        slopes = lax.pmean(top.grad(loss)(w, x, y), "i")
        return [p - 0.1 * s for p, s in zip(w, slopes)]

    step, w = top.pmap(step, "i"), start(jnp.arange(n))
    x, y = (rng.normal(size=(n, 64, k)).astype("f4") for k in (256, 10))
    x, y = (top.pmap(lambda v: v)(v) for v in (x, y))
    yield "step of a network", lambda: step(w, x, y)
    tree = [total(jnp.ones((n, 100), "float32")) for _ in range(20)]
    yield "psum of a tree of 20", lambda: total(tree)
    mesh = top.sharding.Mesh(np.array(top.devices()[:n]), ("x",))
    by_rows = top.sharding.NamedSharding(mesh, P("x"))
    rows = top.device_put(np.ones((8, 8), "f4"), by_rows)
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")}
    mapped = top.jit(top.shard_map(lambda v: v / lax.psum(v, "x"), **how))
    yield "shard_map in jit", lambda: mapped(rows)
    spread = top.jit(lambda v: jnp.tanh(v) / v.sum(0))
    yield "jit of arrays in parts", lambda: spread(rows)


def least(top, f, seconds=0.25):
    """Return the microseconds of the fastest of many calls."""
    block = top.block_until_ready
    block(f()), block(f())
    found, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 5:
        start = time.perf_counter()
        block(f())
        found.append(time.perf_counter() - start)
    return 1e6 * min(found)


def timed(library, only):
    """Print the times of a library as JSON."""
    top = importlib.import_module(library)
    names = [(n, name, f) for n in DEVICES for name, f in work(top, n) if only in name]
    print(json.dumps({f"{name}|{n}": least(top, f) for n, name, f in names}))


def process(way, only):
    """Return the times of one process of a way."""
    library, variables = WAYS[way]
    eight = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    command = [sys.executable, __file__, "--library", library, "--only", only]
    env = os.environ | eight | variables
    done = subprocess.run(
        command, env=env, text=True, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(best):
    """Print the times and ratios of all rows, and say which are behind."""
    print(f"{'':24}{'n':>3}" + "".join(f"{way:>11}" for way in WAYS) + "  ratio   must")
    for name, musts in MUST.items():
        for n, must in zip(DEVICES, musts):
            times = [best[way].get(f"{name}|{n}") for way in WAYS]
            if None in times:
                continue
            ratio = times[0] / times[1]
            mark = "must" if ratio >= must else "BEHIND"
            shown = "".join(f"{each:11.1f}" for each in times)
            print(f"{name:24}{n:3}{shown} {ratio:6.2f} {must:6.2f} {mark}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--library")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.library:
        return timed(options.library, options.only)
    best: dict = {way: {} for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            for key, value in process(way, options.only).items():
                best[way][key] = min(value, best[way].get(key, value))
    table(best)
    if options.json:
        options.json.write_text(json.dumps(best, indent=1))


if __name__ == "__main__":
    main()
