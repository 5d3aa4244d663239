"""The experiments of JAX's first paper, measured again: `make experiments`.

    python benchmarks/experiments.py [--only newton] [--note "a busy machine"]

The contestants take turns in one process, on one core. What counts is the time of the
processor, so that other programs on the machine disturb as little as can be; of several
samples the median is kept. Results are compared before they are measured. The numbers
go into `book/helper/data/experiments.json`, which chapter 38 reads.
"""

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from side_by_side import pin, random, refuse_different_arrays, versions

# isort: split
import numpy as np
import paper_programs as programs
from rows import Eager

RECORD = Path(__file__).parents[1] / "book" / "helper" / "data" / "experiments.json"
SAMPLES, SECONDS, SLOW = 9, 0.02, 0.3
PROCESSES = 7  # in which a short program of JAX is measured again
NEWTON = [
    *[("quadratic", programs.quadratic, (n,), 3, 60) for n in (10, 100, 300, 1000)],
    *[
        ("HMM fit", programs.markov, size, 4, 6)
        for size in ((4, 8, 40), (32, 32, 40), (64, 32, 40))
    ],
    *[
        ("logistic regression", programs.logistic, size, 6, 20)
        for size in ((100, 10), (1000, 50), (10000, 100))
    ],
]
CHAIN, REGRESSION = (4, 8, 40), (10000, 100)
# XLA's processor backend makes a loop whose state has few bytes one function.
SMALL_LOOPS = (
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1000000"
)
LAYERS = 1_000, 10_000, 100_000, 1_000_000, 4_000_000
REPLICAS = 1, 2, 4, 8
BATCH, SHARE = 16, 4  # images of a step, and those of a replica


def cpu_seconds(f, repeats):
    """Time of the processor for one call, averaged over `repeats`."""
    start = time.process_time()
    for _ in range(repeats):
        f()
    return (time.process_time() - start) / repeats


def compete(functions, samples=SAMPLES):
    """Return the median time of each function."""
    return middles(turns(functions, samples))


def middles(times):
    """Return the median for each name."""
    return {name: statistics.median(found) for name, found in times.items()}


def ends(times):
    """Return the least and the greatest for each name."""
    return {name: [min(found), max(found)] for name, found in times.items()}


def turns(functions, samples=SAMPLES):
    """Return the times of each function; they take turns, slow ones fewer."""
    calls = {
        name: (cpu_seconds(f, 1), cpu_seconds(f, 1)) for name, f in functions.items()
    }
    once = {name: min(pair) for name, pair in calls.items()}
    times = {name: [] for name in functions}
    for k in range(samples):
        for name, f in functions.items():
            if once[name] < SLOW or k % 4 == 0:
                times[name].append(cpu_seconds(f, max(1, int(SECONDS / once[name]))))
    return times


def waiting(package, f):
    """Return a function that waits for the results of another."""
    return lambda: package.block_until_ready(f())


def autograd():
    """Autograd under JAX's names, or None where it is not installed."""
    try:
        found = importlib.import_module("autograd")
    except ImportError:
        return None
    operators = importlib.import_module("autograd.differential_operators")
    leaves = SimpleNamespace(tree_flatten=lambda x: ([x], None))
    leaves.tree_unflatten = lambda tree, xs: xs[0]
    package = SimpleNamespace(
        numpy=importlib.import_module("autograd.numpy"), tree_util=leaves, lax=None,
        grad=found.grad, value_and_grad=found.value_and_grad,
        jvp=lambda f, xs, vs: operators.make_jvp(f)(*xs)(*vs),
    )  # fmt: skip
    return Eager(package)


def counted(package, f):
    """Return how many operations a function does one by one, and the bytes of them."""
    found = [0, 0]

    def watch(primitive, args, params, results):
        found[0] += 1
        found[1] += sum(np.asarray(x).nbytes for x in (*args, *results))

    package.core.watchers.append(watch)
    f()
    package.core.watchers.remove(watch)
    return found


def first_call(package, f, x):
    """Return the program of a function, and the seconds until its first result."""
    package.clear_caches()
    start = time.process_time()
    program = package.jit(f)
    package.block_until_ready(program(x))
    return program, time.process_time() - start


def newton(ours, jax):
    """The table of the paper: truncated Newton-CG on three problems."""
    for name, make, size, steps, rounds in NEWTON:

        def program(package, made=make, size=size, limits=(steps, rounds)):
            f, x = made(package, *size)
            return lambda x: programs.newton_cg(package, f, x, *limits), x

        yield {"program": name, "size": list(size)} | newton_row(
            name, program, ours, jax
        )


def newton_row(name, program, ours, jax):
    """Return what was counted and measured of one problem."""
    functions, first = {}, {}
    for title, package in {"eager": Eager(ours), "Autograd": autograd()}.items():
        if package:
            f, x = program(package)
            x = x if title == "Autograd" else ours.numpy.asarray(x)
            functions[title] = partial(f, x)
    for title, package in {"minijax": ours, "JAX": jax}.items():
        f, x = program(package)
        x = package.numpy.asarray(x)
        compiled, first[title] = first_call(package, f, x)
        functions[title] = waiting(package, partial(compiled, x))
    results = {title: f() for title, f in functions.items()}
    for title, result in results.items():
        refuse_different_arrays(name, title, results["minijax"], result)
    operations, touched = counted(ours, functions["eager"])
    histories = {title: np.asarray(history) for title, (_, history) in results.items()}
    return {
        "operations": operations, "bytes": touched, "first": first,
        "seconds": compete(functions),
        "rounds": {title: list(map(int, h[:, 1])) for title, h in histories.items()},
    }  # fmt: skip


def layer(ours, jax):
    """The SeLU layer, in one kernel and in a kernel for each operation."""
    for size in LAYERS:
        xs = [random(size, seed=seed) for seed in range(3)]
        functions = {}
        for title, package in {"minijax": ours, "JAX": jax}.items():
            whole, args = selu_layer(package), list(map(package.numpy.asarray, xs))
            fused = partial(package.jit(whole), *args)
            functions[title] = waiting(package, fused)
            functions[f"{title}, eager"] = waiting(package, partial(whole, *args))
        functions["apart"] = without_fusion(ours, list(map(ours.numpy.asarray, xs)))
        outs = [[functions[title]()] for title in ("minijax", "JAX", "apart")]
        refuse_different_arrays("SeLU", "JAX", *outs[:2])
        refuse_different_arrays("SeLU", "the program in parts", outs[0], outs[2])
        yield {"size": size, "seconds": compete(functions)}


def selu_layer(package):
    """Return a layer of one scale and one shift for each number."""
    return lambda x, w, b: programs.selu(package, x * w + b)


def without_fusion(ours, args):
    """Return the layer as a program in which each operation is a kernel."""
    with patch("minijax.cpu_backend.backend.fuse", lambda program, *_, **__: program):
        program = ours.jit(selu_layer(ours))
        program(*args)
    return partial(program, *args)


def step(ours, jax):
    """A step of the all-convolutional network, beside a product of matrices."""
    functions, outs = {}, {}
    for title, package in (("minijax", ours), ("JAX", jax)):
        given = [programs.conv_params(), *programs.conv_images(BATCH)]
        given = package.tree_util.tree_map(package.numpy.asarray, given)
        program = package.jit(programs.conv_step(package))
        functions[title] = waiting(package, lambda f=program, a=given: f(*a))
        outs[title] = functions[title]()
        a = package.numpy.asarray(random(512, 512))
        product = package.jit(lambda a: a @ a)
        functions[f"{title}, product"] = waiting(package, lambda f=product, a=a: f(a))
        if title == "minijax":
            flops = program.lower(*given).compile().cost_analysis()["flops"]
            eager = programs.conv_step(package)
            functions["eager"] = lambda f=eager, a=given: f(*a)
    refuse_different_arrays("step", "JAX", outs["minijax"], outs["JAX"])
    yield {
        "batch": BATCH, "flops": flops, "product": 2 * 512**3,
        "seconds": compete(functions),
    }  # fmt: skip


def replicas_step(package, count):
    """Return the function that does a step on some replicas, a share of images each."""
    package.config.update("jax_num_cpu_devices", max(REPLICAS))
    mesh = package.make_mesh((count,), ("replicas",), devices=package.devices()[:count])
    P = package.P

    def mean(slopes):
        return package.lax.pmean(slopes, "replicas")

    program = package.shard_map(
        programs.conv_step(package, mean), mesh=mesh,
        in_specs=(P(), P("replicas"), P("replicas")), out_specs=P(), check_vma=False,
    )  # fmt: skip
    if package.__name__ == "jax":  # ours compiles the program of a replica by itself
        program = package.jit(program)
    put = package.NamedSharding
    whole, parts = put(mesh, P()), put(mesh, P("replicas"))
    params = package.device_put(programs.conv_params(), whole)
    images = package.device_put(programs.conv_images(SHARE * count), parts)
    return waiting(package, lambda: program(params, *images))


def one_count(name, count):
    """Print the seconds of a step by the clock and by the processor, as a process."""
    package = importlib.import_module(name)
    package.NamedSharding = importlib.import_module(f"{name}.sharding").NamedSharding
    f, samples = replicas_step(package, count), []
    f(), f()
    for _ in range(SAMPLES):
        wall, used = time.perf_counter(), time.process_time()
        for _ in range(5):
            f()
        samples.append(
            ((time.perf_counter() - wall) / 5, (time.process_time() - used) / 5)
        )
    print(json.dumps([min(column) for column in zip(*samples)]))


def replicas(ours, jax):
    """The same step on more and more replicas, in processes that take turns."""
    counts = {p: {"minijax": [], "JAX": []} for p in REPLICAS}
    for _ in range(3):
        for count, found in counts.items():
            for title, package in (("minijax", ours), ("JAX", jax)):
                command = [sys.executable, __file__, "--replicas", package.__name__]
                done = subprocess.run(
                    [*command, str(count)], capture_output=True, text=True, check=True
                )
                found[title].append(json.loads(done.stdout))
    for count, found in counts.items():
        best = {t: [min(x) for x in zip(*runs)] for t, runs in found.items()}
        yield {
            "replicas": count, "share": SHARE,
            "wall": {t: wall for t, (wall, _) in best.items()},
            "seconds": {t: used for t, (_, used) in best.items()},
        }  # fmt: skip


def causes(ours, jax):
    """Two rows of the table of `newton` again, with one thing changed in each."""
    yield {"cause": "small loops", "size": list(CHAIN), **small_loops(ours)}
    yield {"cause": "float64", "size": list(REGRESSION), **in_float32(ours, jax)}


def small_loops(ours):
    """Let XLA compile larger loops as one function; its option is a process's."""
    f, x = programs.markov(ours, *CHAIN)
    x = ours.numpy.asarray(x)
    run = ours.jit(lambda x: programs.newton_cg(ours, f, x, 4, 6))
    options = {"JAX": "", "JAX, loops as one": SMALL_LOOPS}
    times, whole = {title: [] for title in ("minijax", *options)}, {}
    for _ in range(PROCESSES):
        times["minijax"] += compete({"": waiting(ours, lambda: run(x))}).values()
        for title, flags in options.items():
            done = subprocess.run(
                [sys.executable, __file__, "--chain"], capture_output=True, text=True,
                check=True, env={**os.environ, "XLA_FLAGS": flags},
            )  # fmt: skip
            took, whole[title] = json.loads(done.stdout)
            times[title].append(took)
    return {"seconds": middles(times), "ends": ends(times), "loops as one": whole}


def one_chain():
    """Print JAX's seconds for the small Markov model, and which loops are one call."""
    jax = importlib.import_module("jax")
    f, x = programs.markov(jax, *CHAIN)
    x = jax.numpy.asarray(x)
    program = jax.jit(lambda x: programs.newton_cg(jax, f, x, 4, 6)).lower(x).compile()
    loops = re.findall(r'\) (while)\(|(xla_cpu_small_call)="true"', program.as_text())
    counts = [sum(map(bool, column)) for column in zip(*loops)]
    seconds = compete({"": waiting(jax, lambda: program(x))})[""]
    print(json.dumps([seconds, {"loops": counts[0], "as one": counts[1]}]))


def in_float32(ours, jax):
    """Keep Autograd from float64, which its rule of `mean` and a `where` bring in."""
    functions = {}
    packages = {"minijax": ours, "JAX": jax, "eager": Eager(ours)}
    packages |= {"Autograd": autograd(), "Autograd, float32": narrow(autograd())}
    for title, package in packages.items():
        f, x = programs.logistic(package, *REGRESSION)
        if title == "Autograd, float32":
            f = sum_of_losses(package)
        run = package.jit(partial(programs.newton_cg, package, f, steps=6, rounds=20))
        x = x if "Autograd" in title else package.numpy.asarray(x)
        functions[title] = waiting(jax, partial(run, x))
    outs = {title: f() for title, f in functions.items()}
    for title, out in outs.items():
        refuse_different_arrays("regression", title, outs["minijax"], out)
    dtypes = {title: str(np.asarray(out[0]).dtype) for title, out in outs.items()}
    times = turns(functions)
    return {"seconds": middles(times), "ends": ends(times), "dtypes": dtypes}


def narrow(package):
    """Return Autograd with a `where` whose literals do not widen."""
    where = package.numpy.where
    package.numpy = SimpleNamespace(**vars(package.numpy))
    package.numpy.where = lambda *xs: np.asarray(where(*xs), "float32")
    return package


def sum_of_losses(package):
    """The logistic regression with a sum that is divided, in place of a mean."""
    jnp, (examples, features) = package.numpy, REGRESSION
    x = random(examples, features)
    y = np.sign(x @ random(features, seed=1) + random(examples, seed=2))

    def loss(w):
        losses = jnp.log1p(jnp.exp(-y * (x @ w)))
        return jnp.sum(losses) / examples + 0.005 * (w @ w)

    return loss


EXPERIMENTS = {f.__name__: f for f in (newton, causes, layer, step, replicas)}


def main():
    """Measure, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=EXPERIMENTS, help="leave the others alone")
    parser.add_argument("--note", default="", help="what to say about the machine")
    parser.add_argument("--replicas", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--chain", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.chain:
        one_chain()
        return
    if chosen.replicas:
        one_count(chosen.replicas[0], int(chosen.replicas[1]))
        return
    ours, jax = (importlib.import_module(name) for name in ("minijax", "jax"))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    # What an earlier run has left on the disk would not have to be compiled again.
    cache = tempfile.TemporaryDirectory()
    ours.config.update("jax_compilation_cache_dir", cache.name)
    about = {**versions([ours, jax]), "note": chosen.note}
    for name, experiment in EXPERIMENTS.items():
        if chosen.only in (None, name):
            about["cores"] = len(os.sched_getaffinity(0)) if name == "replicas" else 1
            rows = measured(name, experiment(ours, jax))
            record[name] = {"about": dict(about), "rows": rows}
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def measured(name, rows):
    """Return the rows of an experiment, on one core unless it is about several."""
    cores = os.sched_getaffinity(0)
    if name != "replicas":
        pin()
    found = []
    for row in rows:
        print(name, json.dumps(row), flush=True)
        found.append(row)
    os.sched_setaffinity(0, cores)
    return found


if __name__ == "__main__":
    main()
