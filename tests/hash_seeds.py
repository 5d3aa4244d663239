"""What programs compile to, in processes of their own with other hash seeds.

Ranks compile for themselves, and each process of Python gives strings other hashes. So
no order in a program may come from a set, or its ranks would talk in different orders.

python -m tests.hash_seeds                  # all programs of the corpus, three seeds
python -m tests.hash_seeds --every 9        # some of them
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.commands import options_of, reported

ROOT = Path(__file__).parents[1]
SEEDS = "0", "1", "2026"
DIALECTS = "jaxpr", "simplified", "steps", "memory", "llvm"
TRANSFORMED = "plain", "grad", "vmap", "jvp"


def corpus_texts(every, first=0):
    """Yield names and texts of programs: their jaxprs, and all that follows."""
    import minijax
    from tests import corpus

    change = corpus.transformations(minijax)
    for i, (name, (f, point)) in enumerate(corpus.programs(minijax).items()):
        for j, way in enumerate(TRANSFORMED):
            if (i * len(TRANSFORMED) + j) % every == first:
                g = f if way == "plain" else change[way](f)
                try:
                    lowered = minijax.jit(g).lower(np.asarray(point, "float32"))
                except ValueError:  # a gradient of a loop that may go on for ever
                    continue
                for dialect in DIALECTS:
                    yield f"{way} {name} {dialect}", lowered.as_text(dialect)


def mesh_texts():
    """Yield names and texts of programs for the devices of a mesh."""
    import minijax
    import minijax.numpy as jnp
    from minijax import P, grad, lax, pmap, shard_map, vmap
    from minijax.sharding import NamedSharding
    from minijax.sharding.shard_map import _programs

    mesh = minijax.make_mesh((2, 1), ("x", "y"))
    x = np.arange(16, dtype="float32").reshape(4, 4)

    def loss(tree, v):
        hidden = jnp.tanh(v @ tree["w"] + tree["b"])
        return lax.pmean((hidden @ tree["v"]).sum(), "x")

    tree = {"w": x, "b": x[0], "v": x[:, 0], "c": x[0], "a": x}
    how = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P()}
    mapped = shard_map(grad(loss), **how)
    programs = {
        "tree of gradients": (mapped, tree, x),
        "batch of them": (vmap(mapped, (None, 0)), tree, np.stack([x, x])),
        "gradient of a loop": (
            grad(lambda w: lax.scan(lambda c, _: (mapped({**tree, "w": c}, x)["w"], 0),
                                    w, None, 2)[0].sum()), x),
        "pmap": (pmap(lambda v: lax.psum({"b": v, "a": v[0], "c": v > 1}, "i"), "i"),
                 x[:2]),
    }  # fmt: skip
    for name, (f, *args) in programs.items():
        minijax.clear_caches()
        yield f"{name} jaxpr", str(minijax.make_jaxpr(f)(*args))
        minijax.jit(f)(*args)
        made = [p for once in _programs.values() for p in once.values.values()]
        yield f"{name} steps", "".join(str(p.executable.lowered) for p in made)
    for spec in (P("x"), P(None, "x"), P("x", "y")):
        cut = minijax.device_put(x, NamedSharding(mesh, spec))
        step = minijax.jit(grad(lambda v: (jnp.sin(v) @ v.T / v.sum(0)).sum()))
        made = step.lower(cut).compile()
        made(cut)
        yield f"parts {spec}", made.as_text()


def faulty_texts():
    """Yield a text that depends on the seed, if the test of this test asks for it."""
    if os.environ.get("HASHED"):
        yield "a set", str({"psum", "pmax", "pmin", "all_gather", "ppermute", "x", "y"})


def digests(every, first):
    """Return the digests of all texts, by names."""
    import minijax

    minijax.config.update("jax_num_cpu_devices", 2)
    found = {}
    for name, text in [*corpus_texts(every, first), *mesh_texts(), *faulty_texts()]:
        text = re.sub(r"0x[0-9a-f]+", "0x", text)
        found[name] = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return found


def started(seed, every, first, **variables):
    """Start a process with a hash seed, which prints its digests."""
    code = f"from tests import hash_seeds as h; h.show({every}, {first})"
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env=os.environ | variables | {"PYTHONHASHSEED": seed},
    )  # fmt: skip


def show(every, first):
    """Print the digests as JSON."""
    print(json.dumps(digests(every, first)))


def compare(every=1, first=0, **variables):
    """Return names of texts that differ between hash seeds, and how many there are."""
    found = []
    for seed in SEEDS:
        process = started(seed, every, first, **variables)
        found.append(json.loads(process.communicate()[0].splitlines()[-1]))
    names = {name: [texts.get(name) for texts in found] for name in found[0]}
    assert all(texts.keys() == found[0].keys() for texts in found)
    return [name for name, texts in names.items() if len({*texts}) > 1], len(names)


def main():
    options = options_of(__doc__, every=1, first=0)
    wrong, count = compare(options.every, options.first)
    sys.exit(reported(f"{count} texts under the hash seeds {', '.join(SEEDS)}", wrong))


if __name__ == "__main__":
    main()
