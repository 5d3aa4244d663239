"""Train an all-convolutional network to read 1,797 images of handwritten digits.

    python examples/conv_digits.py                    trains, and reads the test images
    python examples/conv_digits.py --jax              the same with real JAX
    python examples/conv_digits.py --devices 8        each batch is cut over 8 devices
    python examples/conv_digits.py --checkpoint FILE  goes on where the last run stopped

The images are in `book/helper/data`, with their licence. Needs tqdm (the progress bar).
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
stax = import_module(f"{LIBRARY}.example_libraries.stax")
optimizers = import_module(f"{LIBRARY}.example_libraries.optimizers")
sharding = import_module(f"{LIBRARY}.sharding")

DATA = Path(__file__).parents[1] / "book" / "helper" / "data" / "digits.npz"
STEPS, BATCH, TEST, RATE = 660, 64, 357, 0.005

init_net, net = stax.serial(
    stax.Conv(16, (3, 3), padding="SAME"), stax.Relu,
    stax.Conv(32, (3, 3), (2, 2), padding="SAME"), stax.Relu,
    stax.Conv(32, (3, 3), padding="SAME"), stax.Relu,
    stax.Conv(10, (1, 1)), stax.AvgPool((4, 4)), stax.Flatten, stax.LogSoftmax,
)  # fmt: skip
optimizer = optimizers.adam(optimizers.polynomial_decay(RATE, STEPS, RATE / 20))


def load():
    """Return images and labels for training, and images and labels for the test."""
    with np.load(DATA, allow_pickle=False) as found:
        images = found["images"][..., None].astype("float32") / 16
        labels = found["labels"].astype("int32")
    return images[:-TEST], labels[:-TEST], images[-TEST:], labels[-TEST:]


def loss(params, images, labels):
    """Return the mean of -log p of the right digits."""
    right = jax.nn.one_hot(labels, 10)
    return -(right * net(params, images)).sum(1).mean()


@partial(jax.jit, donate_argnums=1)
def step(i, state, images, labels):
    """Return the loss before the step, and the state after it."""
    value, gradients = jax.value_and_grad(loss)(
        optimizer.params_fn(state), images, labels
    )
    return value, optimizer.update_fn(i, gradients, state)


def start(seed=0):
    """Return the state of the optimizer before the first step."""
    return optimizer.init_fn(init_net(jax.random.key(seed), (1, 8, 8, 1))[1])


def examples(i, count):
    """Return which examples step `i` takes: a function of `i`, and of nothing else."""
    epoch, place = divmod(i, count // BATCH)
    order = np.random.default_rng(epoch).permutation(count)
    return order[place * BATCH : (place + 1) * BATCH]


def placement(devices):
    """Return where a batch goes: cut over all devices if there are several."""
    mesh = sharding.Mesh(np.array(jax.devices()[:devices]), ("batch",))
    return sharding.NamedSharding(mesh, sharding.PartitionSpec("batch"))


def train(steps=STEPS, devices=1, checkpoint=None, every=100, log=None, bar=tqdm):
    """Return the state after so many steps, and the losses of the steps of this run."""
    images, labels, _, _ = load()
    state, first, losses = start(), 0, []
    if checkpoint and Path(checkpoint).exists():
        first, state = resume(checkpoint, state)
    for i in bar(range(first, steps), desc=f"{LIBRARY}: steps"):
        chosen = examples(i, len(labels))
        batch = images[chosen], labels[chosen]
        if devices > 1:
            batch = jax.device_put(batch, placement(devices))
        value, state = step(i, state, *batch)
        losses.append(float(value))
        if log:
            with open(log, "a", encoding="utf-8") as lines:
                lines.write(f"{i} {losses[-1].hex()}\n")
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
    arrays = map(jax.numpy.asarray, found["state"])
    return found["step"], jax.tree.unflatten(tree, arrays)


def accuracy(state):
    """Return the share of test images that are read correctly."""
    _, _, images, labels = load()
    read = jax.jit(net)(optimizer.params_fn(state), images)
    return float((np.asarray(read).argmax(1) == labels).mean())


def main():
    """Read the options, train, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax", action="store_true", help="with real JAX")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--checkpoint", help="file to go on from, and to write")
    parser.add_argument("--every", type=int, default=100, help="steps between writes")
    parser.add_argument("--log", help="file that gets a line for each step")
    given = parser.parse_args()
    if given.devices > 1:
        jax.config.update("jax_num_cpu_devices", given.devices)
    began, worked = time.perf_counter(), time.process_time()
    options = given.devices, given.checkpoint, given.every, given.log
    state, losses = train(given.steps, *options)
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    for i in [*range(0, len(losses), max(1, len(losses) // 5)), len(losses) - 1]:
        print(f"loss {losses[i]:.6f}, {len(losses) - 1 - i} steps before the last")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{accuracy(state):.1%} of {TEST} test images are read correctly")
    print(f"{seconds:.1f} s, {worked:.1f} s of the processor, {memory:.0f} MB at most")


if __name__ == "__main__":
    main()
