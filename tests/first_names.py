"""Each public name as the first that a process resolves: all that follows is the same.

A name imports its module, and modules fill tables. After each name, what is in the
tables, and what thirty operations answer, is compared with what there is after another
one. Each case is a process that a nursery forks, in which nothing of the package has
been imported yet.

python -m tests.first_names                     # one name of each module
python -m tests.first_names --every             # all names
python -m tests.first_names --pairs 500 --seed 1    # two names, drawn at random
"""

import ast
import importlib
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.cold_processes import LIMIT, ROOT, preload, received, spawned
from tests.commands import options_of, reported
from tests.mutants_package import prelude

[PACKAGE] = map(Path, find_spec("minijax").submodule_search_locations)
# Filled as lines are looked for.
CACHES = {("minijax.diagnostics.tracebacks", "readers")}


def all_names():
    """Yield pairs of a public name with its path and the module that defines it."""
    from minijax._public import PUBLIC

    for space, names in PUBLIC.items():
        for name, module in names.items():
            yield f"{space}.{name}", module


def one_of_each(seed=0):
    """A name of each module that defines public names, drawn at random."""
    rng, of_module = random.Random(seed), defaultdict(list)
    for name, module in all_names():
        of_module[module].append(name)
    return [[rng.choice(names)] for names in of_module.values()]


def one_of_each_folder(seed=0):
    """A name out of each folder that has modules with public names."""
    rng, of_folder = random.Random(seed), defaultdict(list)
    for name, module in all_names():
        of_folder[module.rpartition(".")[0]].append(name)
    return [[rng.choice(names)] for names in of_folder.values()]


def pairs(seed, count):
    """Lists of two names, drawn at random."""
    rng, names = random.Random(seed), [name for name, _ in all_names()]
    return [rng.sample(names, 2) for _ in range(count)]


def resolve(path):
    """Ask for a name as a user does: attribute after attribute of the package."""
    package, *names = path.split(".")
    value = importlib.import_module(package)
    for name in names:
        value = getattr(value, name)
    return value


# Thirty operations, of all floors. Each returns what `repr` shows.


def operations():
    """Yield thirty operations as functions without arguments."""
    import numpy as np

    import minijax as jax
    import minijax.numpy as jnp
    from minijax import lax

    x, m = jnp.arange(4.0), jnp.eye(2) * 2
    yield lambda: x + 1
    yield lambda: x[1:] * x[-1]
    yield lambda: x[jnp.array([2, 0])]
    yield lambda: x[x > 1]
    yield lambda: x.at[0].set(5.0)
    yield lambda: x.at[jnp.array([0, 0])].add(1.0)
    yield lambda: jax.jit(lambda v: v.at[1].mul(3.0))(x)
    yield lambda: jax.grad(lambda v: v.at[2].set(0.0).sum())(x)
    yield lambda: (len(x), list(x), bool(x[1]), int(x[2]), f"{x[3]:.1f}")
    yield lambda: x.reshape(2, 2).T.astype(int).sum(0)
    yield lambda: jnp.sort(-x)
    yield lambda: x.argsort()
    yield lambda: jax.nn.softmax(x)
    yield lambda: jax.grad(lambda v: jax.nn.logsumexp(v))(x)
    yield lambda: jax.vmap(lambda v: jnp.sin(v) * v)(x)
    yield lambda: jax.jacfwd(jnp.cumsum)(x)
    yield lambda: jax.hessian(lambda v: (v**3).sum())(x)
    yield lambda: lax.scan(lambda c, v: (c + v, c * v), 0.0, x)
    yield lambda: lax.while_loop(lambda i: i < 5, lambda i: i + 2, 0)
    yield lambda: lax.cond(x[0] > 1, jnp.sin, jnp.cos, x)
    yield lambda: jnp.linalg.solve(m, x[:2])
    yield lambda: jnp.fft.fft(x)
    yield lambda: jax.random.normal(jax.random.key(0), (2,))
    yield lambda: jnp.einsum("i,j->ij", x, x)
    yield lambda: lax.conv_general_dilated(m[None, None], m[None, None], (1, 1), "SAME")
    yield lambda: jax.make_jaxpr(lambda v: lax.top_k(v, 2))(x)
    yield lambda: jax.pmap(lambda v: lax.psum(v, "i"), "i")(x[:1])
    yield lambda: jax.tree.map(jnp.negative, {"a": x, "b": (1, None)})
    yield lambda: jax.jit(lambda v: v).lower(x).as_text()[:40]
    yield lambda: (x.aval, jax.typeof(x).sharding, x.devices(), np.asarray(x))


def answers():
    """What the operations answer, or raise."""
    found = []
    for operation in operations():
        try:
            found.append(repr(operation()))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


# What is in the tables that floors fill.


def filled_by(node, imported):
    """Yield the names of lower floors' tables that a statement of a module changes."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func]
    for target in targets:
        inside = getattr(target, "value", None)
        if isinstance(inside, ast.Name) and inside.id in imported:
            yield imported[inside.id]


@cache
def hooks():
    """List modules with names of tables, lists and slots that other modules fill."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("minijax.")
            for alias in node.names
        }
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Call)):
                found.update(filled_by(node, imported))
    return sorted(found - CACHES)


def described(value, depth=2):
    """Say which function or class something is, so that another process says it too."""
    if isinstance(value, property):
        return f"property {described(value.fget)}"
    if isinstance(value, tuple):
        return [described(each) for each in value]
    code = getattr(value, "__code__", None)
    if code is None:
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        return str(name or type(value).__name__)
    inside = [cell.cell_contents for cell in value.__closure__ or () if is_set(cell)]
    around = [each for each in inside if depth and hasattr(each, "__code__")]
    place = f"{value.__module__}:{code.co_firstlineno}"
    return f"{code.co_qualname} of {place} {[described(f, depth - 1) for f in around]}"


def is_set(cell):
    """Whether a variable of a function around has a value yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def entries(value):
    """What is in a table, a list or a slot, as texts; those of lists in their order."""
    if isinstance(value, dict):
        return {repr(key): described(rule) for key, rule in value.items()}
    if isinstance(value, (set, frozenset)):
        return {repr(each): "" for each in value}
    if isinstance(value, list):
        return [described(each) for each in value]
    if type(value).__name__ == "Hook":
        return [described(value.value)]
    return None


def tables(names):
    """What is in all tables, when everything that fills them has been imported."""
    from minijax import _lazy
    from minijax.core import Array

    _lazy.run_registrations()
    found = {"Array": sorted(entries(dict(vars(Array))).items())}
    for module, name in names:
        value = getattr(sys.modules.get(module), name, None)
        if value is not None and (inside := entries(value)) is not None:
            found[f"{module}.{name}"] = inside
    return found


# The nursery.


def after(names, known):
    """What a process has and answers after these names."""
    exec(prelude(), {"__name__": "mutant"})
    for name in names:
        resolve(name)
    found = answers()
    return [found, tables(known)]


def nursery(cases, known):
    """Run cases one after the other; a text for each that is different.

    Args:
      cases: lists of names.
      known: what `hooks` has found, which takes seconds.
    """
    expected = received(*spawned(lambda: after(["minijax.grad"], known), LIMIT))
    assert isinstance(expected, list), expected
    assert not [text for text in expected[0] if "Error" in text], expected[0]
    given = [received(*spawned(lambda c=c: after(c, known), LIMIT)) for c in cases]
    pairs = zip(cases, given)
    found = [(case, different(answer, expected)) for case, answer in pairs]
    return [f"{case}: {text}" for case, text in found if text]


def different(answer, expected):
    """Say what is different, or what has gone wrong."""
    if isinstance(answer, str):
        return answer[:2000]
    [found, filled], [right, full] = answer, expected
    lines = [f"{a} and not {b}" for a, b in zip(found, right) if a != b]
    for name in filled.keys() & full.keys():
        lines += [f"{name} has {odd}" for odd in unlike(filled[name], full[name])]
    return "\n  ".join(lines)[:2000]


def unlike(mine, other):
    """Yield what is different in a table; rules of some primitives come with them."""
    if isinstance(mine, list):
        yield from [mine] if mine != other else ()
        return
    for key in mine.keys() & other.keys():
        if mine[key] != other[key]:
            yield f"{key}: {mine[key]} and not {other[key]}"


def compare(cases):
    """Run cases in a process; a text for each that is different."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "MINIJAX_NURSERY": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.first_names"],
        input=json.dumps([cases, hooks()]),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main():
    if os.environ.pop("MINIJAX_NURSERY", None):
        preload()
        print(json.dumps(nursery(*json.load(sys.stdin))))
        return 0
    options = options_of(__doc__, seed=0, pairs=0, every=False)
    cases = one_of_each(options.seed)
    if options.every:
        cases = [[name] for name, _ in all_names()]
    if options.pairs:
        cases = pairs(options.seed, options.pairs)
    return reported(f"{len(cases)} first names", compare(cases))


if __name__ == "__main__":
    sys.exit(main())
