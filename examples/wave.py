"""Train a recurrent network to continue a wave: the loop over time is a scan.

Needs tqdm (the progress bar). With `import jax` in place of the first import it prints
the same losses.
"""

import minijax as jax  # isort: skip

import numpy as np
from tqdm import tqdm

jnp = jax.numpy
STEPS, LENGTH, WAVES, UNITS = 600, 40, 16, 24
RATE, FRICTION = 0.1, 0.9


def load(length=LENGTH, seed=0):
    """Return waves of different pitch and phase, an array of shape (time, wave)."""
    rng = np.random.default_rng(seed)
    pitch, phase = rng.uniform(0.2, 0.5, WAVES), rng.uniform(0.0, 6.0, WAVES)
    return np.sin(np.arange(length)[:, None] * pitch + phase).astype("float32")


def initial_parameters(seed=0):
    """Return the weights: from input, from the last state, and to the guess."""
    rng = np.random.default_rng(seed)
    sizes = {"in": (1, UNITS), "again": (UNITS, UNITS), "out": (UNITS, 1)}
    return {
        name: (rng.normal(size=size) / np.sqrt(size[0])).astype("float32")
        for name, size in sizes.items()
    }


def follow(params, state, value):
    """Return the next state, and the guess of the next value, for all waves."""
    state = jnp.tanh(value[:, None] @ params["in"] + state @ params["again"])
    return state, (state @ params["out"])[:, 0]


def loss(params, waves):
    """Return the mean squared error of all guesses."""
    start = jnp.zeros((waves.shape[1], UNITS))
    _, guesses = jax.lax.scan(
        lambda state, value: follow(params, state, value), start, waves[:-1]
    )
    return jnp.mean((guesses - waves[1:]) ** 2)


@jax.jit
def train_step(params, speed, waves):
    """Return the loss, and parameters and speed after one step downhill."""
    value, gradient = jax.value_and_grad(loss)(params, waves)
    speed = jax.tree_util.tree_map(
        lambda s, g: FRICTION * s - RATE * g, speed, gradient
    )
    return value, jax.tree_util.tree_map(lambda p, s: p + s, params, speed), speed


def train(steps=STEPS, bar=tqdm):
    """Return the trained parameters and the loss of each step."""
    waves, params = load(), initial_parameters()
    speed = jax.tree_util.tree_map(np.zeros_like, params)
    losses = []
    for _ in bar(range(steps), desc="steps"):
        value, params, speed = train_step(params, speed, waves)
        losses.append(float(value))
    return params, losses


def dream(params, heard, length):
    """Listen to waves, then go on alone; return what is heard, and what is dreamt."""
    state = jnp.zeros((heard.shape[1], UNITS))
    state, guesses = jax.lax.scan(
        lambda state, value: follow(params, state, value), state, heard
    )

    def alone(carry, _):
        state, value = carry
        state, guess = follow(params, state, value)
        return (state, guess), value

    _, dreamt = jax.lax.scan(alone, (state, guesses[-1]), None, length=length)
    return dreamt


if __name__ == "__main__":
    params, losses = train()
    for step in range(0, STEPS, 100):
        print(f"step {step:3}: loss {losses[step]:.6f}")
    waves = load(LENGTH + 5)
    error = np.abs(np.asarray(dream(params, waves[:-5], 5)) - waves[-5:]).mean()
    print(f"after {LENGTH} values, the next 5 differ by {error:.3f} on average")
