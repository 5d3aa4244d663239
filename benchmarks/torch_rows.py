"""The same work written for PyTorch, as its users write it: eager, or compiled.

A row is a function from PyTorch, and from what compiles a function of tensors, to a
function without arguments that does the work once.
"""

import shutil

import numpy as np
from side_by_side import random

SECONDS_TO_COMPILE = 120
PROGRAMS, ONLY_EAGER = {}, set()


def program(name, *variants, unrolled=False):
    """Return a decorator that adds a program for each variant, as `rows.row` does.

    Args:
      name: of the row; ``{}`` stands for the variant.
      *variants: what is given to the function behind its first two arguments.
      unrolled: whether a compiler would write out the loop, and take minutes.
    """

    def add(make):
        for variant in variants or ((),):
            args = variant if isinstance(variant, tuple) else (variant,)

            def build(torch, compiled, args=args):
                return make(torch, compiled, *args)

            PROGRAMS[name.format(*args)] = build
            if unrolled:
                ONLY_EAGER.add(name.format(*args))
        return make

    return add


def rivals(torch, name):
    """Return the makers of functions without arguments for a row, by contestant."""
    if name not in PROGRAMS:
        return {}
    build = PROGRAMS[name]
    found = {"torch": lambda: build(torch, lambda f: f)}
    if name not in ONLY_EAGER and (shutil.which("g++") or shutil.which("clang++")):
        found["torch.compile"] = lambda: build(torch, _compiler(torch))
    return found


def _compiler(torch):
    torch.compiler.reset()
    return lambda f: torch.compile(f, dynamic=False)


def as_numpy(results):
    """Return the arrays of one tensor, or of a list of them."""
    results = results if isinstance(results, list | tuple) else [results]
    return [result.detach().numpy() for result in results]


@program("call, two arrays of 4")
def _call(torch, compiled):
    a, b = map(torch.from_numpy, (random(4), random(4, seed=1)))
    add = compiled(lambda a, b: a + b)
    return lambda: add(a, b)


@program("SeLU layer, {:.0e}", 1e5, 1e6, 1e7)
def _selu_layer(torch, compiled, size):
    x, w, b = (torch.from_numpy(random(int(size), seed=seed)) for seed in range(3))

    def layer(x, w, b):
        z = x * w + b
        return 1.05 * torch.where(z > 0, z, 1.67 * torch.exp(z) - 1.67)

    layer = compiled(layer)
    return lambda: layer(x, w, b)


def _of_one_tensor(torch, function, *shape, dtype="float32", positive=False):
    numbers = random(*shape, dtype=dtype)
    x = torch.from_numpy(abs(numbers) if positive else numbers)
    return lambda: function(x)


@program("10 operations, {:.0e}", 1e5, 1e6, 1e7)
def _chain(torch, compiled, size):
    def operations(x):
        for _ in range(3):
            x = torch.abs(x * 1.1 - 0.5) + 0.25 * x
        return torch.tanh(x)

    return _of_one_tensor(torch, compiled(operations), int(size))


@program("two threads: 10 operations, 1e6")
def _chain_in_threads(torch, compiled):
    return _chain(torch, compiled, 1e6)


@program("{}, 1e5", "exp", "log", "tanh")
@program("{} f32, 1e5", "sin", "cos")
def _single(torch, compiled, name):
    function = compiled(lambda x: getattr(torch, name)(x))
    return _of_one_tensor(torch, function, 100_000, positive=True)


@program("{} f64, 1e5", "sin", "cos", "log")
def _double(torch, compiled, name):
    function = compiled(lambda x: getattr(torch, name)(x))
    return _of_one_tensor(torch, function, 100_000, dtype="float64", positive=True)


@program("erf, 1e5", "float32")
@program("erf f64, 1e5", "float64")
def _erf(torch, compiled, dtype):
    function = compiled(lambda x: torch.erf(x))
    return _of_one_tensor(torch, function, 100_000, dtype=dtype)


@program("sum, {:.0e}", 1e5, 1e6)
def _total(torch, compiled, size):
    return _of_one_tensor(torch, compiled(lambda x: x.sum()), int(size))


@program("softmax, {}x{}", (1000, 1000), (4096, 1024))
def _softmax(torch, compiled, *shape):
    return _of_one_tensor(torch, compiled(lambda x: torch.softmax(x, 1)), *shape)


@program("layer norm, 4096x1024")
def _layer_norm(torch, compiled):
    arrays = random(4096, 1024), *random(2, 1024)
    x, scale, shift = map(torch.from_numpy, arrays)
    norm = torch.nn.functional.layer_norm
    function = compiled(lambda x, scale, shift: norm(x, (1024,), scale, shift))
    return lambda: function(x, scale, shift)


@program("sums of columns, 4096x1024")
def _columns(torch, compiled):
    return _of_one_tensor(torch, compiled(lambda x: x.sum(0)), 4096, 1024)


@program("cumulative sum, 1e6")
def _cumulative_sum(torch, compiled):
    return _of_one_tensor(torch, compiled(lambda x: torch.cumsum(x, 0)), 1_000_000)


@program("argmax, 1e6")
def _argmax(torch, compiled):
    return _of_one_tensor(torch, compiled(lambda x: torch.argmax(x)), 1_000_000)


@program("matrix product, {}", 16, 32, 64, 128, 256, 512, 1024)
@program("two threads: matrix product, {}", 512)
def _matmul(torch, compiled, n):
    a, b = (torch.from_numpy(random(n, n, seed=seed)) for seed in (0, 1))
    function = compiled(lambda a, b: a @ b)
    return lambda: function(a, b)


@program("logistic regression, gradient, {}x{}", (100, 10), (1000, 50))
def _logistic(torch, compiled, examples, features):
    arrays = random(examples, features), np.sign(random(examples, seed=2))
    x, y = map(torch.from_numpy, arrays)
    w = torch.from_numpy(random(features)).requires_grad_()
    loss = compiled(lambda w, x, y: torch.log1p(torch.exp(-y * (x @ w))).mean())
    return lambda: torch.autograd.grad(loss(w, x, y), w)


def _parameters(torch, arrays):
    return [torch.from_numpy(array).requires_grad_() for array in arrays]


def _layers(torch, sizes):
    arrays = []
    for m, n in zip(sizes, sizes[1:]):
        weights = random(m, n) / np.float32(np.sqrt(m))
        arrays += np.zeros(n, "float32"), weights
    return _parameters(torch, arrays)


def _training_step(torch, loss, params, x, y):
    def step():
        slopes = torch.autograd.grad(loss(params, x, y), params)
        with torch.no_grad():
            return [p - 0.1 * slope for p, slope in zip(params, slopes)]

    return step


@program("training step, 2-16-1, batch 8")
def _tiny(torch, compiled):
    def loss(params, x, y):
        b0, w0, b1, w1 = params
        hidden = torch.tanh(torch.addmm(b0, x, w0))
        return torch.nn.functional.mse_loss(torch.addmm(b1, hidden, w1), y)

    x, y = map(torch.from_numpy, (random(8, 2), random(8, 1)))
    return _training_step(torch, compiled(loss), _layers(torch, (2, 16, 1)), x, y)


@program("training step, 784-512-512-10, batch 128")
def _digits(torch, compiled):
    def loss(params, x, y):
        b0, w0, b1, w1, b2, w2 = params
        x = torch.relu(torch.addmm(b0, x, w0))
        x = torch.relu(torch.addmm(b1, x, w1))
        return torch.nn.functional.cross_entropy(torch.addmm(b2, x, w2), y)

    params = _layers(torch, (784, 512, 512, 10))
    x, y = torch.from_numpy(random(128, 784)), torch.arange(128) % 10
    return _training_step(torch, compiled(loss), params, x, y)


@program("transformer block, gradient, 8x64x128")
def _transformer(torch, compiled):
    functional = torch.nn.functional
    shapes = (512, 128), (128, 128), (128, 384), (128, 512)
    params = _parameters(torch, [0.05 * random(*shape) for shape in shapes])

    def loss(params, x):
        down, out, qkv, up = params
        q, k, v = (
            functional.layer_norm(x, (128,)) @ qkv
        ).reshape(8, 64, 3, 4, 32).permute(2, 0, 3, 1, 4)  # fmt: skip
        found = functional.scaled_dot_product_attention(q, k, v)
        x = x + found.transpose(1, 2).reshape(8, 64, 128) @ out
        x = x + torch.relu(functional.layer_norm(x, (128,)) @ up) @ down
        return (x * x).mean()

    loss, x = compiled(loss), torch.from_numpy(random(8, 64, 128))
    return lambda: torch.autograd.grad(loss(params, x), params)


@program("gradient of an RNN, 64 units, batch {}", 1, 8, 64, unrolled=True)
def _recurrent_network(torch, compiled, batch):
    w, b = _parameters(torch, (0.1 * random(64, 64), random(64)))
    xs = torch.from_numpy(random(100, batch, 64))

    def gradient():
        h = torch.zeros(batch, 64)
        for x in xs:
            h = torch.tanh(h @ w + x + b)
        return torch.autograd.grad((h * h).sum(), (w, b))

    return gradient
