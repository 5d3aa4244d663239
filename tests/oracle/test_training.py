"""The example libraries and the training examples, beside real JAX."""

import importlib
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import minijax

EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = "minijax", "jax"


class Library:
    """minijax or JAX, with its example libraries."""

    def __init__(self, name):
        self.jax = importlib.import_module(name)
        libraries = f"{name}.example_libraries"
        self.stax = importlib.import_module(f"{libraries}.stax")
        self.optimizers = importlib.import_module(f"{libraries}.optimizers")


BOTH = [Library(name) for name in LIBRARIES]


def same(ours, theirs, tolerance=0.0):
    """Compare two trees: structures, types, and numbers."""
    ours, tree = minijax.tree.flatten(ours)
    theirs, expected = jax.tree.flatten(theirs)
    assert str(tree) == str(expected)
    for x, y in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def drawn_evenly(library):
    """Initializers whose numbers have the same bits in both libraries."""
    uniform = library.jax.nn.initializers.uniform
    return {"W_init": uniform(0.5), "b_init": uniform(0.1)}


def layers(s, even):
    """Networks as functions of a library: each kind of layer, in each of its modes."""
    square = 2, 2
    return {
        "dense": ((5, 4), s.serial(s.Dense(7, **even), s.Tanh, s.Dense(3))),
        "conv": ((2, 6, 5, 3), s.Conv(4, (3, 2), square, "SAME", **even)),
        "general conv": (
            (2, 3, 6, 5),
            s.GeneralConv(("NCHW", "OIHW", "NHWC"), 4, square, **even),
        ),
        "transposed": ((2, 4, 4, 3), s.ConvTranspose(2, (3, 3), square, **even)),
        "transposed 1": ((2, 5, 3), s.Conv1DTranspose(4, (3,), (2,), "SAME", **even)),
        "norm": ((4, 3, 3, 2), s.serial(s.BatchNorm(), s.Relu)),
        "norm plain": ((4, 3), s.BatchNorm(0, center=False, scale=False)),
        "norm moved": ((4, 3), s.BatchNorm((0,), epsilon=0.1, scale=False)),
        "pools": (
            (2, 6, 6, 3),
            s.serial(
                s.MaxPool(square), s.SumPool(square, square),
                s.AvgPool(square, None, "SAME"),
            ),
        ),
        "pool axes": ((2, 3, 6, 6), s.AvgPool((3, 3), square, "SAME", "NCHW")),
        "fork": (
            (2, 4, 4, 3),
            s.serial(
                s.FanOut(3),
                s.parallel(s.Identity, s.Conv(3, (1, 1), **even), s.Exp),
                s.FanInSum, s.FanOut(2), s.FanInConcat(), s.Flatten, s.LogSoftmax,
            ),
        ),
        "dropped": ((50, 4), s.serial(s.Dense(3, **even), s.Dropout(0.6), s.Sigmoid)),
        "kept": ((5, 4), s.serial(s.Dropout(0.6, "test"), s.Softplus)),
        "shapes": (
            (2, 4, 4, 1),
            s.shape_dependent(lambda shape: s.Conv(shape[1], (2, 2), **even)),
        ),
        "activations": (
            (2, 9), s.serial(s.Elu, s.LeakyRelu, s.Selu, s.Gelu, s.Softmax),
        ),
    }  # fmt: skip


def applied(library, name):
    shape, (init, apply) = layers(library.stax, drawn_evenly(library))[name]
    out_shape, params = init(library.jax.random.PRNGKey(1), shape)
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    outs = apply(params, x, rng=library.jax.random.PRNGKey(2))
    assert tuple(out_shape) == outs.shape
    return params, outs


@pytest.mark.parametrize("name", list(layers(BOTH[0].stax, {})))
def test_layers(name):
    (params, outs), (expected, their_outs) = [applied(lib, name) for lib in BOTH]
    same(params, expected, 1e-6 if name == "dense" else 0.0)
    same(outs, their_outs, 2e-5)


MAKERS = {
    "sgd(0.1)": 0, "momentum(0.1, 0.9)": 0, "nesterov(0.1, 0.9)": 0, "adagrad(0.1)": 0,
    "rmsprop(0.1)": 0, "rmsprop_momentum(0.1, 0.8, 1e-6, 0.7)": 0, "adamax(0.1)": 0,
    "adam(0.1)": 1e-6, "adam(0.1, 0.8, 0.99, 1e-3)": 1e-6, "sm3(0.1)": 0,
    "adam(constant(0.1))": 1e-6, "sgd(exponential_decay(0.1, 3, 0.5))": 1e-7,
    "sgd(inverse_time_decay(0.1, 2, 0.5))": 0,
    "sgd(inverse_time_decay(0.1, 2, 0.5, True))": 0,
    "sgd(polynomial_decay(0.1, 3, 0.01, 2.0))": 1e-7,
    "sgd(piecewise_constant([1, 3], [0.1, 0.2, 0.3]))": 0,
}  # fmt: skip


def updated(library, maker):
    """States and parameters after four steps, the last of which is compiled."""
    o, rng = library.optimizers, np.random.default_rng(1)
    made = eval(maker, {name: getattr(o, name) for name in dir(o) if name[0] != "_"})

    def some():
        return {"w": rng.normal(size=(3, 4)), "b": [rng.normal(size=4)]}

    def narrow(tree):
        return library.jax.tree.map(lambda x: library.jax.numpy.float32(x), tree)

    state = made.init_fn(narrow(some()))
    for i in range(3):
        state = made.update_fn(i, narrow(some()), state)
    last = library.jax.jit(made.update_fn)(3, narrow(some()), state)
    again = library.optimizers.pack_optimizer_state(
        library.optimizers.unpack_optimizer_state(state)
    )
    return state, made.params_fn(state), again, last


@pytest.mark.parametrize("maker", MAKERS)
def test_optimizers(maker):
    ours, theirs = [updated(library, maker) for library in BOTH]
    same(ours[:3], theirs[:3], MAKERS[maker])
    same(ours[3], theirs[3], 1e-6)


def test_lengths_of_gradients():
    def found(library):
        tree = {"a": library.jax.numpy.arange(4.0), "b": [library.jax.numpy.ones(2)]}
        o = library.optimizers
        return o.l2_norm(tree), o.clip_grads(tree, 1.0), o.clip_grads(tree, 9.0)

    same(*map(found, BOTH), 1e-6)


def example(name, library, monkeypatch):
    """Return the names of an example that uses a library."""
    pytest.importorskip("tqdm")
    options = ["--jax"] * (library == "jax")
    monkeypatch.setattr(sys, "argv", [name, *options])
    path = EXAMPLES / f"{name}.py"
    names = {"__name__": name, "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    assert names["jax"].__name__ == library
    return names


@pytest.mark.parametrize(("name", "steps"), [("conv_digits", 12), ("sonnets", 10)])
def test_examples_learn_alike(name, steps, monkeypatch):
    losses = []
    for library in LIBRARIES:
        names = example(name, library, monkeypatch)
        names.update(WIDTH=32, LAYERS=1)  # of the transformer, to compile quickly
        losses.append(names["train"](steps, bar=lambda items, desc: items)[1])
    assert losses[0][-1] < losses[0][0] - 0.01
    np.testing.assert_allclose(*losses, rtol=1e-4)
