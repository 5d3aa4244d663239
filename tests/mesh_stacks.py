"""Stacks of transformations, three deep, around and inside of `shard_map`, beside JAX.

A stack has a `shard_map` at one of four places: with all three transformations around
it, two of them, one, or none. Each is run on an array in parts, on eight devices.

python -m tests.mesh_stacks                    # all stacks of all bodies, beside JAX
python -m tests.mesh_stacks --every 40         # some of them
"""

import importlib
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.commands import options_of, reported

RING = [(i, (i + 1) % 4) for i in range(4)]
TRANSFORMATIONS = "jit", "grad", "vmap", "jvp", "checkpoint", "scan"


def transformations(top):
    """Return changes of functions from an array to one of the same shape."""
    jnp, lax = top.numpy, top.lax
    return {
        "jit": top.jit,
        "grad": lambda f: top.grad(lambda x: jnp.sin(f(x)).sum()),
        "vmap": lambda f: lambda x: top.vmap(f)(jnp.stack([x, 0.5 * x])).sum(0),
        "jvp": lambda f: lambda x: top.jvp(f, (x,), (x,))[1],
        "checkpoint": top.checkpoint,
        "scan": lambda f: (
            lambda x: lax.scan(lambda c, _: (jnp.sin(f(c)), None), x, None, length=2)[0]
        ),
    }


def bodies(top):
    """Return functions of the block of a device, an array of two numbers."""
    jnp, lax = top.numpy, top.lax
    return {
        "sum": lambda v: v * lax.psum(jnp.sin(v), "x"),
        "gather": lambda v: lax.all_gather(v, "x").sum(0) * v,
        "turn": lambda v: lax.ppermute(jnp.cos(v), "x", RING) * v,
        "weights": lambda v: jnp.tanh(lax.psum(v[0] * v[1], "x") * v) + v,
    }


def stacks():
    """Yield the name of a body, whether types are checked, and transformations.

    Those of the first tuple are around the map, the last of them is the innermost.
    """
    names = "sum", "gather", "turn", "weights"
    triples = itertools.product(TRANSFORMATIONS, repeat=3)
    for stack, place, name in itertools.product(triples, range(4), names):
        check = (len(name) + place + len(stack[0])) % 2 == 0
        yield name, check, stack[:place], stack[place:]


def chosen(every, first):
    """Return every so manieth stack, from the first on."""
    return [*stacks()][first::every]


def program(top, mesh, name, check, around, inside):
    """Return the function of a stack."""
    change, P = transformations(top), top.sharding.PartitionSpec
    f = bodies(top)[name]
    for transform in reversed(inside):
        f = change[transform](f)
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x"), "check_vma": check}
    f = top.shard_map(f, **how)
    for transform in reversed(around):
        f = change[transform](f)
    return top.jit(f)


def run(library, path, every, first):
    """Run stacks in a library, and write what was found, or the class of an error."""
    top = importlib.import_module(library)
    top.config.update("jax_num_cpu_devices", 8)
    mesh = top.sharding.Mesh(np.array(top.devices()).reshape(4, 2), ("x", "y"))
    rows = top.sharding.NamedSharding(mesh, top.sharding.PartitionSpec("x"))
    x, found = top.device_put(np.linspace(-1, 1.5, 8, dtype="float32"), rows), {}
    for stack in chosen(every, first):
        try:
            found[stack] = np.asarray(program(top, mesh, *stack)(x))
        except Exception as error:
            found[stack] = f"{type(error).__name__}: {str(error)[:300]}"
        top.clear_caches()
    Path(path).write_bytes(pickle.dumps(found))


def compare(every=1, first=0):
    """Return texts about stacks that differ, and how many JAX runs, and refuses."""
    both = []
    with tempfile.TemporaryDirectory() as folder:
        for library in ("minijax", "jax"):
            path = str(Path(folder, library))
            call = f"mesh_stacks.run({library!r}, {path!r}, {every}, {first})"
            code = f"from tests import mesh_stacks; {call}"
            flags = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
            command = [sys.executable, "-c", code]
            subprocess.run(command, check=True, env=os.environ | flags)
            both.append(pickle.loads(Path(path).read_bytes()))
    ours, theirs = both
    wrong = [s for s in ours if not same(ours[s], theirs[s])]
    refused = sum(isinstance(x, str) for x in theirs.values())
    told = [f"{stack}\n{ours[stack]}\n{theirs[stack]}" for stack in wrong]
    return told, len(ours) - refused, refused


def same(ours, theirs):
    """Return whether results are alike; where JAX raises an error, ours may work."""
    if isinstance(theirs, str):
        return True
    if isinstance(ours, str) or ours.shape != theirs.shape:
        return False
    return np.allclose(ours, theirs, rtol=2e-3, atol=2e-4, equal_nan=True)


def main():
    options = options_of(__doc__, every=1, first=0)
    wrong, count, refused = compare(options.every, options.first)
    sys.exit(reported(f"{count} stacks, and {refused} that JAX refuses", wrong))


if __name__ == "__main__":
    main()
