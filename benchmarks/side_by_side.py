"""Two packages measured beside each other: what the tables of this folder share.

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

import numpy as np  # after the settings, which it reads

SAMPLES, SECONDS = 15, 0.02


def random(*shape, seed=0):
    """Normally distributed numbers in single precision."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


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


def refuse_different_results(name, packages, functions):
    """Raise if the two programs of a row do not compute the same arrays."""
    results = [p.tree_util.tree_leaves(f()) for p, f in zip(packages, functions)]
    for a, b in zip(*results, strict=True):
        if hasattr(a, "dtype") and not np.allclose(a, b, rtol=1e-2, atol=1e-3):
            raise ValueError(f"minijax and JAX disagree about {name!r}")


def rows(programs, packages, only):
    """Yield name and numbers of each row of a table whose name contains `only`."""
    blocks = [package.block_until_ready for package in packages]
    tables = [programs(package) for package in packages]
    for name in tables[0]:
        if only in name:
            functions = [table[name] for table in tables]
            refuse_different_results(name, packages, functions)
            yield name, measure(*functions, blocks)


def main(programs, about):
    """Print a table.

    Args:
      programs: function from a package to its rows: a dictionary from names to
        functions without arguments that do the work once.
      about: the documentation of the table.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--json", help="write the numbers to this file, too")
    parser.add_argument("--only", default="", help="rows with this in their names")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    packages = [importlib.import_module(name) for name in ("minijax", "jax")]
    versions = ", ".join(f"{p.__name__} {p.__version__}" for p in packages)
    print(f"{versions}, numpy {np.__version__}, {platform.processor() or 'CPU'}")
    print(f"{'':38}{'minijax':>13}{'JAX':>13}{'ratio':>8}   quartiles")
    results = {}
    for name, row in rows(programs, packages, options.only):
        low, high = row["spread"]
        print(
            f"{name:38}{row['minijax_us']:10.1f} µs{row['jax_us']:10.1f} µs"
            f"{row['ratio']:8.2f}   {low:.2f}–{high:.2f}",
            flush=True,
        )
        results[name] = row
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"versions": versions, "rows": results}, file, indent=1)
