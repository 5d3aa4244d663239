"""Train a small transformer on 18 sonnets, letter by letter, and let it go on alone.

    python examples/sonnets.py                    trains, and prints some lines
    python examples/sonnets.py --jax              the same with real JAX
    python examples/sonnets.py --checkpoint FILE  goes on where the last run stopped

The text is in `book/helper/data`: William Shakespeare, 1609, in the public domain.
Needs tqdm (the progress bar).
"""

import argparse
import resource
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from tqdm import tqdm

LIBRARY = "jax" if "--jax" in sys.argv else "minijax"
jax = import_module(LIBRARY)
jnp = import_module(f"{LIBRARY}.numpy")
optimizers = import_module(f"{LIBRARY}.example_libraries.optimizers")

TEXT = Path(__file__).parents[1] / "book" / "helper" / "data" / "sonnets.txt"
LENGTH, WIDTH, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 16
STEPS, RATE, TEMPERATURE = 1500, 0.003, 0.7

text = TEXT.read_text(encoding="utf-8")
LETTERS = sorted(set(text))
CODES = np.array([LETTERS.index(letter) for letter in text], "int32")
optimizer = optimizers.adam(optimizers.polynomial_decay(RATE, STEPS, RATE / 10))


def initial_parameters(seed=0):
    """Return the tables of letters and places, and the weights of each layer."""
    keys = iter(jax.random.split(jax.random.key(seed), 3 + 4 * LAYERS))

    def draw(rows, columns, scale=1.0):
        size = scale * rows**-0.5
        return size * jax.random.normal(next(keys), (rows, columns))

    params = {
        "letters": draw(len(LETTERS), WIDTH, 2.0),
        "places": draw(LENGTH, WIDTH, 4.0),
        "out": draw(WIDTH, len(LETTERS)),
    }
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH), "mix": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH),
    }  # fmt: skip
    layers = [{name: draw(*shapes[name]) for name in shapes} for _ in range(LAYERS)]
    return params | {"layers": layers}


def layer(params, x):
    """Return x [batch, place, feature] after attention and a small network."""
    batch, places, _ = x.shape
    heads = (jax.nn.standardize(x) @ params["qkv"]).reshape(
        batch, places, 3 * HEADS, WIDTH // HEADS
    )
    seen = jax.nn.dot_product_attention(*jnp.split(heads, 3, 2), is_causal=True)
    x = x + seen.reshape(batch, places, WIDTH) @ params["mix"]
    return x + jax.nn.gelu(jax.nn.standardize(x) @ params["up"]) @ params["down"]


def scores(params, codes):
    """Return one number for each place and each letter that could follow."""
    x = params["letters"][codes] + params["places"][: codes.shape[1]]
    for weights in params["layers"]:
        x = layer(weights, x)
    return jax.nn.standardize(x) @ params["out"]


def loss(params, codes):
    """Return the mean of -log p of the letters that follow."""
    logs = jax.nn.log_softmax(scores(params, codes[:, :-1]))
    return -jnp.take_along_axis(logs, codes[:, 1:, None], 2).mean()


@partial(jax.jit, donate_argnums=1)
def step(i, state, codes):
    """Return the loss before the step, and the state after it."""
    value, gradients = jax.value_and_grad(loss)(optimizer.params_fn(state), codes)
    return value, optimizer.update_fn(i, gradients, state)


def passages(i):
    """Return the pieces of text for step `i`: a function of `i`."""
    starts = np.random.default_rng(i).integers(0, len(CODES) - LENGTH, BATCH)
    return CODES[starts[:, None] + np.arange(LENGTH + 1)]


def train(steps=STEPS, checkpoint=None, every=250, bar=tqdm):
    """Return the state after so many steps, and the losses of the steps of this run."""
    state, first, losses = optimizer.init_fn(initial_parameters()), 0, []
    if checkpoint and Path(checkpoint).exists():
        first, state = resume(checkpoint, state)
    for i in bar(range(first, steps), desc=f"{LIBRARY}: steps"):
        value, state = step(i, state, passages(i))
        losses.append(float(value))
        if checkpoint and (i + 1) % every == 0:
            keep(checkpoint, i + 1, state)
    return state, losses


def keep(path, i, state):
    """Write the number of the next step, and the state."""
    from minijax.training.checkpoints import save

    save(path, {"step": i, "state": list(map(np.asarray, jax.tree.leaves(state)))})


def resume(path, like):
    """Return the number of the next step, and the state, from a checkpoint."""
    from minijax.training.checkpoints import restore

    leaves, tree = jax.tree.flatten(like)
    found = restore(path, {"step": 0, "state": list(map(np.asarray, leaves))})
    return found["step"], jax.tree.unflatten(tree, map(jnp.asarray, found["state"]))


@jax.jit
def next_letter(params, codes, place, key):
    """Return a letter to follow the one at `place`, drawn by its probability."""
    return jax.random.categorical(key, scores(params, codes)[0, place] / TEMPERATURE)


def write(params, begin, count, seed=0):
    """Return `begin` and as many letters more."""
    codes = [LETTERS.index(letter) for letter in begin]
    for key in jax.random.split(jax.random.key(seed), count):
        seen = np.zeros((1, LENGTH), "int32")
        seen[0, : len(codes[-LENGTH:])] = codes[-LENGTH:]
        place = min(len(codes), LENGTH) - 1
        codes.append(int(next_letter(params, seen, place, key)))
    return "".join(LETTERS[code] for code in codes)


def main():
    """Read the options, train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax", action="store_true", help="with real JAX")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--checkpoint", help="file to go on from, and to write")
    given = parser.parse_args()
    began, worked = time.perf_counter(), time.process_time()
    state, losses = train(given.steps, given.checkpoint)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    for i in [*range(0, len(losses), max(1, len(losses) // 5)), len(losses) - 1]:
        print(f"loss {losses[i]:.4f}, {len(losses) - 1 - i} steps before the last")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.1f} s, {worked:.1f} s of the processor, {memory:.0f} MB at most")
    print(write(optimizer.params_fn(state), "Shall I ", 240))


if __name__ == "__main__":
    main()
