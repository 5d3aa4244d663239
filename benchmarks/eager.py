"""Eager minijax beside eager JAX: operations, tracing, a gradient.

    python benchmarks/eager.py [--json FILE]

Each sample times the two packages one after the other, so that a busy moment of the
machine meets both. The ratio is the median of the samples' ratios: minijax / JAX.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np

SAMPLES, SECONDS = 15, 0.02


def programs(jax):
    """The rows: names, and functions without arguments that do the work once."""
    jnp = jax.numpy
    rng = np.random.default_rng(0)
    small, large = (jnp.asarray(rng.normal(size=n), "float32") for n in (4, 100_000))
    matrix = jnp.asarray(rng.normal(size=(128, 128)), "float32")
    images = jnp.asarray(rng.normal(size=(48, 64)), "float32")
    params = [
        {"w": jnp.asarray(rng.normal(size=shape), "float32"), "b": jnp.zeros(shape[1])}
        for shape in ((64, 64), (64, 10))
    ]

    def network(params, x):
        for layer in params:
            x = jnp.tanh(jnp.dot(x, layer["w"]) + layer["b"])
        return (x * x).sum()

    def chain(x):
        for _ in range(50):
            x = jnp.sin(x) * 2.0
        return x

    gradient = jax.value_and_grad(network)
    return {
        "add, 4 numbers": lambda: small + small,
        "tanh, 100,000 numbers": lambda: jnp.tanh(large),
        "sum, 100,000 numbers": lambda: large.sum(),
        "matrix product, 128": lambda: matrix @ matrix,
        "write down 100 equations": lambda: jax.make_jaxpr(lambda x: chain(x))(small),
        "jvp of 100 operations": lambda: jax.jvp(chain, (small,), (small,)),
        "vmap of 100 operations": lambda: jax.vmap(chain)(matrix),
        "value and gradient of a network": lambda: gradient(params, images),
    }


def seconds(f, block, repeats):
    """Time of one call, averaged over `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        block(f())
    return (time.perf_counter() - start) / repeats


def measure(ours, theirs, blocks):
    """Medians of our time, of JAX's time and of their ratio."""
    repeats = []
    for f, block in zip((ours, theirs), blocks, strict=True):
        seconds(f, block, 1)
        once = seconds(f, block, 2)
        repeats.append(max(1, int(SECONDS / once)))
    samples = [
        [seconds(*row) for row in zip((ours, theirs), blocks, repeats, strict=True)]
        for _ in range(SAMPLES)
    ]
    ratios = sorted(a / b for a, b in samples)
    return {
        "minijax_us": 1e6 * statistics.median(a for a, _ in samples),
        "jax_us": 1e6 * statistics.median(b for _, b in samples),
        "ratio": statistics.median(ratios),
        "spread": [ratios[len(ratios) // 4], ratios[-len(ratios) // 4]],
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", help="write the numbers to this file, too")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    packages = [importlib.import_module(name) for name in ("minijax", "jax")]
    blocks = [package.block_until_ready for package in packages]
    versions = ", ".join(f"{p.__name__} {p.__version__}" for p in packages)
    print(f"{versions}, numpy {np.__version__}, {platform.processor() or 'CPU'}")
    print(f"{'':34}{'minijax':>12}{'JAX':>12}{'ratio':>8}   quartiles")
    tables = [programs(package) for package in packages]
    results = {}
    for name in tables[0]:
        row = measure(tables[0][name], tables[1][name], blocks)
        low, high = row["spread"]
        print(
            f"{name:34}{row['minijax_us']:9.1f} µs{row['jax_us']:9.1f} µs"
            f"{row['ratio']:8.2f}   {low:.2f}–{high:.2f}",
            flush=True,
        )
        results[name] = row
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"versions": versions, "rows": results}, file, indent=1)


if __name__ == "__main__":
    main()
