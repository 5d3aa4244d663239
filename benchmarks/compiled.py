"""Jitted minijax beside `jax.jit`, and others beside it: the table of goals.

    python benchmarks/compiled.py [--json FILE] [--only TEXT]

Ours is the default backend; `MINIJAX_BACKEND` chooses another. Columns of others are
ratios: our time divided by theirs, so that less than 1 is faster. "eager" is the same
program in minijax without `jit`: each operation by itself, on NumPy, in Python's loops.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from side_by_side import (
    SAMPLES,
    blocked,
    json,
    measure,
    options,
    pin,
    refuse_different_results,
    summary,
    versions,
    warm,
    write_json,
)

# isort: split
import array_rows  # after the settings of side_by_side, which NumPy reads
import behind_rows
import compile_rows
import family_rows
import fourier_rows
import loop_rows
import matrix_rows
import network_rows
import rivals
import thin_rows
from rows import LATER, ROWS

FAMILIES = array_rows, loop_rows, matrix_rows, network_rows, compile_rows, thin_rows
FAMILIES += family_rows, fourier_rows, behind_rows


def contestants(name, row, packages, compilers):
    """Return functions without arguments by the names of those who compete."""
    functions = [row.make(package) for package in packages]
    if row.results:
        refuse_different_results(name, packages, functions)
    if row.timed:
        return dict(zip(("minijax", "jax"), functions))
    pairs = zip(packages, functions)
    found = {package.__name__: blocked(package, f) for package, f in pairs}
    return found | rivals.functions(name, row, packages[0], functions[0], compilers)


def measured(name, row, packages, compilers):
    """Return the numbers of a row."""
    for package in packages:
        package.config.update("jax_enable_x64", row.wide)
    functions = contestants(name, row, packages, compilers)
    samples = row.samples or SAMPLES
    if row.timed:
        times = [{n: f() for n, f in functions.items()} for _ in range(samples)]
        return summary(times)
    return measure(functions, samples)


def in_another_process(name, threads):
    """Return the numbers of a row, measured with several threads and cores."""
    if len(os.sched_getaffinity(0)) < threads:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        command = [sys.executable, __file__, "--only", name, "--json", str(path)]
        settings = {
            "MINIJAX_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads),
            "MINIJAX_BENCH_THREADS": str(threads), "XLA_FLAGS": "",
            "OMP_WAIT_POLICY": "PASSIVE",  # PyTorch's threads rest while others run
        }  # fmt: skip
        environment = {**os.environ, **settings}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            return None
        return json.loads(path.read_text())["rows"][name]


def heading():
    """Return the table's first line."""
    others = "".join(f"{title:>10}" for title in rivals.TITLES.values())
    return (
        f"{'':46}{'minijax µs':>12}{'JAX µs':>12}{'/ JAX':>8} {'quartiles':13}"
        f"{'must':>6}{'goal':>6} {'':6}{others}"
    )


def line(name, row, found):
    """Return a row of the table as text."""
    if found is None:
        return f"{name:46} not measured"
    ratio = found["ratio"]["jax"]
    low, high = found["quartiles"]["jax"]
    others = [found["ratio"].get(other) for other in rivals.TITLES]
    cells = [f"{x:10.2g}" if x is not None else f"{'–':>10}" for x in others]
    mark = "goal" if ratio <= row.goal else "must" if ratio <= row.must else "BEHIND"
    return (
        f"{name:46}{found['us']['minijax']:12.1f}{found['us']['jax']:12.1f}"
        f"{ratio:8.2f} {low:6.2f}–{high:<6.2f}{row.must:6.2f}{row.goal:6.2f} "
        f"{mark:6}{''.join(cells)}"
    )


def main():
    """Print the table."""
    chosen = options(__doc__)
    threads = int(os.environ.get("MINIJAX_BENCH_THREADS", "1"))
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    names = [name for name in ROWS if chosen.only in name]
    packages = [importlib.import_module(name) for name in ("minijax", "jax")]
    compilers = rivals.installed(threads)
    # What an earlier run has left on the disk would not have to be compiled again.
    cache = tempfile.TemporaryDirectory()
    packages[0].config.update("jax_compilation_cache_dir", cache.name)
    warm(partial(packages[0].jit(lambda x: x + 1), 1.0))  # turns the fast path on
    head = versions([*packages, *compilers.values()])
    print(", ".join(f"{name} {version}" for name, version in head.items()))
    print(heading())
    found = {}
    for name in names:
        row = ROWS[name]
        if row.threads > threads:
            found[name] = in_another_process(name, row.threads)
        else:
            if threads == 1:
                pin()
            found[name] = measured(name, row, packages, compilers)
            found[name] |= {"must": row.must, "goal": row.goal}
            if cores:
                os.sched_setaffinity(0, cores)
        print(line(name, row, found[name]), flush=True)
        if chosen.json:  # after each row: the table takes minutes
            write_json(chosen.json, head, found)
    for name, chapter in LATER.items():
        if chosen.only in name:
            print(f"{name:46} not there yet: {chapter}")
            found[name] = chapter
    if chosen.json:
        write_json(chosen.json, head, found)


if __name__ == "__main__":
    main()
