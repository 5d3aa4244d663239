"""What a program compiles to, after modules of the package are imported in many orders.

Each order is a process that one process forks, in which nothing of the package has been
imported yet. The texts of one program are compared at all stages: its jaxpr, kernels,
program and LLVM.

python -m tests.import_orders --seed 0 --count 100    # orders of all modules, at random
"""

import importlib
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.cold_processes import LIMIT, ROOT, preload, received, spawned
from tests.commands import options_of, reported
from tests.mutants_package import prelude

[PACKAGE] = map(Path, find_spec("minijax").submodule_search_locations)


def modules():
    """The modules of the package, those of low floors first."""
    from book.tools import export

    found = [(export.made_by(path), path) for path in PACKAGE.rglob("*.py")]
    made = sorted((maker, path) for maker, path in found if maker)
    places = [path.relative_to(PACKAGE) for _, path in made]
    return [export.dotted(str(place)) for place in places]


def registering():
    """The modules that fill tables of others."""
    from minijax._public import REGISTERS

    return REGISTERS


def orders(seed, count):
    """Yield lists of modules: low floors first, high ones first, and some at random."""
    names, rng = modules(), random.Random(seed)
    yield names
    yield names[::-1]
    for _ in range(count):
        yield rng.sample(names, len(names))


def texts(order):
    """Return the texts of kernels and of a program, after modules were imported."""
    exec(prelude(), {"__name__": "mutant"})
    for name in order:
        importlib.import_module(name)
    return [["kernels by hand", kernel_texts()], *program_texts()]


def kernel_texts():
    """Return two kernels as LLVM is given them; no public name is needed for it."""
    import numpy as np

    from minijax.kernels.ir import Affine, Parameter, Store
    from minijax.kernels.loop_nests import Kernel, fold_node, load_node, op_node
    from minijax.llvm.targets import forced_target, kernel_function
    from minijax.vectorization import schedules  # noqa: F401 - hands its program in

    x, out = (Parameter(name, np.dtype("float32"), 33 * 100) for name in ("x", "out"))
    place = Affine(0, (100, 1))
    a = load_node(x, place)
    e = op_node("exp", d := op_node("sub", a, m := fold_node("max", (1,), a)))
    r = op_node("div", e, s := fold_node("add", (1,), e))
    nodes, stores = (a, m, d, e, s, r), (Store(out, place, r),)
    softmax = Kernel("softmax", (33, 100), (x, out), nodes, stores)
    found = [kernel_function(softmax, "k", forced_target("plain")).text]

    from tests import vector_cases

    parts = vector_cases.parts(600, 500, np.dtype("float32"), along=0)
    return [*found, kernel_function(parts, "k", forced_target("plain")).text]


def program_texts():
    """Return the texts of a program at all stages."""
    import numpy as np

    import minijax
    import minijax.numpy as jnp
    from minijax import lax

    def loss(w):
        def step(h, x):
            h = lax.cond(x[0] > 0, jnp.tanh, lambda h: h * x, h @ w)
            minijax.debug.print("{}", h[0])
            return h, jnp.max(h)

        h, tops = lax.scan(step, w[0], w)
        e = jnp.exp(w - jnp.max(w, axis=1, keepdims=True))
        soft = jnp.cumsum(e / e.sum(axis=1, keepdims=True), axis=0)
        return jnp.sum(h) + jnp.sum(tops) + jnp.sum(soft.T @ soft)

    both = minijax.jit(minijax.value_and_grad(loss))
    with minijax.config.override("minijax_cpu", "plain"):
        stage = both.lower(np.ones((40, 40), "float32"))
        return [[name, stage.as_text(name)] for name in DIALECTS]


DIALECTS = "jaxpr simplified kernels steps memory python llvm".split()


def compare(wanted):
    """Compile after some orders, in a process; a text for each that is different."""
    command = [sys.executable, "-m", "tests.import_orders"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "MINIJAX_NURSERY": "1"}
    done = subprocess.run(
        command,
        input=json.dumps(wanted),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def nursery(wanted):
    """Fork a process for each order; what it says if it is not what the first says."""
    answers = [received(*spawned(lambda o=o: texts(o), LIMIT)) for o in wanted]
    return [
        f"{' '.join(order[:3])} ...: {different(answer, answers[0])}"
        for order, answer in zip(wanted, answers)
        if answer != answers[0] or isinstance(answer, str)
    ]


def different(answer, expected):
    """Say which texts are different, or what has gone wrong."""
    if isinstance(answer, str) or isinstance(expected, str):
        return f"{answer}"[:1000]
    pairs = zip(answer, expected)
    return "another text of " + ", ".join(a[0] for a, b in pairs if a != b)


def main():
    if os.environ.pop("MINIJAX_NURSERY", None):
        preload()
        print(json.dumps(nursery(json.load(sys.stdin))))
        return 0
    options = options_of(__doc__, seed=0, count=20)
    wanted = [*orders(options.seed, options.count), *[[m] for m in registering()]]
    return reported(f"{len(wanted)} orders of imports", compare(wanted))


if __name__ == "__main__":
    sys.exit(main())
