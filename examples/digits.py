"""Train a small network to read handwritten digits: 1,797 images of 8 x 8 pixels.

Needs scikit-learn (the data) and tqdm (the progress bar). With `import jax` in place of
the first import it prints the same losses.
"""

import minijax as jax  # isort: skip

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

jnp = jax.numpy
EPOCHS, BATCHES, RATE, FRICTION = 20, 30, 0.1, 0.9


def load(seed=0):
    """Return images, labels for training, and images, labels for the test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = (digits.data[order] / 16.0).astype("float32")
    labels = digits.target[order].astype("int32")
    return images[:1437], labels[:1437], images[1437:], labels[1437:]


def initial_parameters(sizes=(64, 64, 10), seed=0):
    """Return a list with the weights and biases of each layer."""
    rng = np.random.default_rng(seed)
    return [
        {
            "w": (rng.normal(size=(n, m)) * np.sqrt(2 / n)).astype("float32"),
            "b": np.zeros(m, "float32"),
        }
        for n, m in zip(sizes, sizes[1:])
    ]


def scores(params, images):
    """Return one number for each image and digit; the largest is the guess."""
    *hidden, last = params
    for layer in hidden:
        images = jnp.tanh(images @ layer["w"] + layer["b"])
    return images @ last["w"] + last["b"]


def loss(params, images, targets):
    """Return the mean of -log p of the right digits; `targets` are unit vectors."""
    logits = scores(params, images)
    logits = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = logits - jnp.log(jnp.exp(logits).sum(axis=1, keepdims=True))
    return -(targets * log_probabilities).sum(axis=1).mean()


@jax.jit
def train_step(params, speed, images, targets):
    """Return the loss, and parameters and speed after one step downhill."""
    value, gradient = jax.value_and_grad(loss)(params, images, targets)
    speed = jax.tree_util.tree_map(
        lambda s, g: FRICTION * s - RATE * g, speed, gradient
    )
    return value, jax.tree_util.tree_map(lambda p, s: p + s, params, speed), speed


def train(epochs=EPOCHS, bar=tqdm):
    """Return the trained parameters and the loss of each step."""
    images, labels, _, _ = load()
    targets = np.eye(10, dtype="float32")[labels]
    params = initial_parameters()
    speed = jax.tree_util.tree_map(np.zeros_like, params)
    shuffle, losses = np.random.default_rng(1), []
    for _ in bar(range(epochs), desc="epochs"):
        for batch in np.array_split(shuffle.permutation(len(images)), BATCHES):
            value, params, speed = train_step(
                params, speed, images[batch], targets[batch]
            )
            losses.append(float(value))
    return params, losses


def accuracy(params):
    """Return the share of test images that are read correctly."""
    _, _, images, labels = load()
    return float((np.asarray(scores(params, images)).argmax(axis=1) == labels).mean())


if __name__ == "__main__":
    params, losses = train()
    for epoch in range(0, EPOCHS, 5):
        print(f"epoch {epoch:2}: loss {losses[epoch * BATCHES]:.6f}")
    print(f"test accuracy: {accuracy(params):.1%}")
