"""Contestants measured beside each other: what the tables of this folder share.

Each sample times all contestants one after the other, so that a busy moment of the
machine meets them all. A ratio is the median of the samples' ratios: ours / theirs.
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MINIJAX_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np  # after the settings, which it reads

SAMPLES, SECONDS = 15, 0.02
SLOW, RARELY = 0.1, 5  # seconds of a call; the samples from one such call to the next
WARM, PATIENCE = 200, 0.5  # calls after which all is as fast as it gets; seconds for it


def random(*shape, seed=0, dtype="float32"):
    """Normally distributed numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def seconds(f, repeats):
    """Time of one call, averaged over `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        f()
    return (time.perf_counter() - start) / repeats


def warm(f):
    """Call a function until it is warm: code that many calls are worth is made."""
    end = time.perf_counter() + PATIENCE
    for _ in range(WARM):
        f()
        if time.perf_counter() > end:
            break


def warm_seconds(f, repeats):
    """The same, after a call that is not timed, unless a call takes long."""
    if repeats > 1:
        f()
    return seconds(f, repeats)


def measure(functions, samples=SAMPLES):
    """Return the medians of the times, and of the ratios of the first to the others.

    Args:
      functions: from names of contestants to functions without arguments: ours, JAX's,
        then others, who are asked less often if they are slow.
      samples: how many.
    """
    repeats, rarely = {}, set()
    for name, f in functions.items():
        once = seconds(f, 1)
        if once > SLOW and len(repeats) > 1:
            rarely.add(name)
        if once <= SLOW:
            warm(f)
        repeats[name] = 1 if once > SLOW else max(1, int(SECONDS / seconds(f, 2)))
    times = [
        {
            name: warm_seconds(f, repeats[name])
            for name, f in functions.items()
            if name not in rarely or k % RARELY == 0
        }
        for k in range(samples)
    ]
    return summary(times)


def summary(times):
    """Return medians of times in microseconds, and of ratios with their quartiles."""
    ours, *others = times[0]
    found = {"us": {}, "ratio": {}, "quartiles": {}}
    for name in (ours, *others):
        known = [sample for sample in times if name in sample]
        found["us"][name] = 1e6 * statistics.median(sample[name] for sample in known)
        if name == ours:
            continue
        ratios = sorted(sample[ours] / sample[name] for sample in known)
        found["ratio"][name] = statistics.median(ratios)
        found["quartiles"][name] = ratios[len(ratios) // 4], ratios[-len(ratios) // 4]
    return found


def blocked(package, f):
    """Return a function that waits for the results of another."""
    block = package.block_until_ready
    return lambda: block(f())


def refuse_different_results(name, packages, functions):
    """Raise if two programs do not compute the same arrays."""
    results = [p.tree_util.tree_leaves(f()) for p, f in zip(packages, functions)]
    refuse_different_arrays(name, "JAX", *results)


def refuse_different_arrays(name, rival, ours, theirs):
    """Raise if the arrays of a rival are not ours.

    A rival may round once where we round twice: in half precision it is further off.
    """
    for a, b in zip(ours, theirs, strict=True):
        atol = 2e-2 if getattr(a, "itemsize", 8) == 2 else 1e-3
        if hasattr(a, "dtype") and not np.allclose(a, b, rtol=1e-2, atol=atol):
            raise ValueError(f"minijax and {rival} disagree about {name!r}")


def options(about):
    """Return the options of a table's command line."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--json", help="write the numbers to this file, too")
    parser.add_argument("--only", default="", help="rows with this in their names")
    return parser.parse_args()


def pin():
    """Keep this process on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def processor():
    """Return the processor's name."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(": ")[2] for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def versions(packages):
    """Return names and versions of packages, and the processor, for a table's head."""
    found = {package.__name__: package.__version__ for package in packages}
    return {
        **found, "numpy": np.__version__, "python": platform.python_version(),
        "processor": processor(), "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def write_json(path, head, rows):
    """Write a table to a file."""
    text = json.dumps({"versions": head, "rows": rows}, indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")
