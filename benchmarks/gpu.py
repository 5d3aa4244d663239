"""Programs on a GPU beside JAX, PyTorch and CuPy: time, and share of its bandwidth.

Each sample asks all contestants one after the other; a sample is many calls, and one
wait behind them. Matrices are multiplied in float32 by all of them, not in TF32.

python benchmarks/gpu.py                      # the table; it needs a GPU
python benchmarks/gpu.py --only softmax --json FILE

`--json book/helper/data/gpu.json` makes the record that chapter 35 shows.
"""

import argparse
import functools
import importlib
import json
import os
import platform
import statistics
import time
from contextlib import suppress
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np  # after the setting, which JAX reads
import paper_programs

SAMPLES, SECONDS, MOST_CALLS = 9, 0.02, 400
BIG = 2**28


def random(*shape, seed=0):
    """Normally distributed numbers, a million of them again and again."""
    few = np.random.default_rng(seed).standard_normal(2**20 + 7, np.float32)
    return np.resize(few, shape) if shape else few[0]


# The rows: functions of a package that is written as NumPy is. `top` has `grad`, or is
# None for CuPy, which has none.


def selu(np, top):
    """A bias, and SeLU."""

    def f(x, b):
        z = x + b
        return 1.0507 * np.where(z > 0, z, 1.6733 * (np.exp(z) - 1))

    return f


def chain(np, top):
    """Ten operations."""

    def f(x):
        for _ in range(3):
            x = np.abs(x * 1.1 - 0.5) + 0.25 * x
        return np.tanh(x)

    return f


def softmax(np, top):
    """Rows that sum to 1."""

    def f(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return f


def layer_norm(np, top):
    """Rows with mean 0 and variance 1, scaled and shifted."""

    def f(x, g, b):
        x = x - x.mean(axis=1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * g + b

    return f


def layer_norm_slopes(np, top):
    """The gradient of a layer norm."""
    norm = layer_norm(np, top)
    return top and top.grad(lambda x, g, b, c: (norm(x, g, b) * c).sum(), (0, 1, 2))


def total(np, top):
    """The sum of all numbers."""
    return lambda x: x.sum()


def row_sums(np, top):
    """Sums of rows."""
    return lambda x: x.sum(axis=1)


def column_sums(np, top):
    """Sums of columns."""
    return lambda x: x.sum(axis=0)


def shares(np, top):
    """Numbers divided by their sum."""
    return lambda x: x / x.sum()


def totals(np, top):
    """Running totals."""
    return lambda x: np.cumsum(x)


def turned(np, top):
    """A transpose, with a factor."""
    return lambda x: x.T * 2


def product(np, top):
    """A product of matrices."""
    return lambda a, b: a @ b


def network_step(np, top):
    """A training step of a network of layers, whose parameters are a list."""

    def loss(weights, x, y):
        for w in weights[:-1]:
            x = np.maximum(x @ w, 0)
        return ((x @ weights[-1] - y) ** 2).mean()

    def step(x, y, *weights):
        slopes = top.grad(loss)(weights, x, y)
        return [w - 0.1 * s for w, s in zip(weights, slopes)]

    return top and step


def chain_of_steps(np, top):
    """A hidden Markov model's beliefs, one observation after the other."""

    def f(belief, likelihoods, moves):
        def step(belief, likelihood):
            found = (belief @ moves) * likelihood
            return found / found.sum(), np.log(found.sum())

        return top.lax.scan(step, belief, likelihoods)

    return top and f


def conv_step(np, top):
    """A training step of an all-convolutional network (Frostig et al., 2018)."""
    if top is None:
        return None
    step = paper_programs.conv_step(top)
    return lambda images, labels, *params: step(list(params), images, labels)


def newton(np, top):
    """Truncated Newton-CG on a convex quadratic of 1,000 unknowns."""
    if top is None:
        return None
    f, start = paper_programs.quadratic(top, 1000)
    return lambda scale: paper_programs.newton_cg(top, f, start * scale, 3, 60)


def layers(*sizes):
    """Weights of layers."""
    pairs = zip(sizes, sizes[1:])
    return [random(m, n, seed=m) / np.float32(np.sqrt(m)) for m, n in pairs]


def positive(*shape):
    """Numbers above 0 that sum to 1 along the last axis."""
    x = np.abs(random(*shape)) + 0.1
    return x / x.sum(-1, keepdims=True)


class Row:
    """A program, its operands, and how many bytes it moves at least.

    Args:
      make: one of the functions above.
      operands: a function that makes its arrays.
      written: how many bytes its results take.
      musts: by contestant, what our time divided by theirs must not exceed.
    """

    def __init__(self, make, operands, written=None, **musts):
        self.make, self.operands = make, operands
        self.written, self.musts = written, musts


ROWS = {
    "bias + SeLU, 2^28": Row(
        selu, lambda: (random(2**14, 2**14), random(2**14)), 4 * BIG,
        jax=1.0, compiled=1.0, cupy=1.0, share=0.92,
    ),
    "10 operations, 2^28": Row(
        chain, lambda: [random(BIG)], 4 * BIG,
        jax=1.0, compiled=1.0, cupy=0.15, share=0.90,
    ),
    "softmax, 16384x4096": Row(
        softmax, lambda: [random(16384, 4096)], 2**28,
        jax=1.0, compiled=1.05, cupy=0.5, share=0.85,
    ),
    "layer norm, 16384x4096": Row(
        layer_norm, lambda: (random(16384, 4096), random(4096), random(4096)), 2**28,
        jax=1.0, compiled=1.05, cupy=0.5, share=0.85,
    ),
    "its gradient": Row(
        layer_norm_slopes,
        lambda: (random(16384, 4096), random(4096), random(4096), random(16384, 4096)),
        2**28, jax=1.0,
    ),
    "sum, 2^28": Row(
        total, lambda: [random(BIG)], 4, jax=1.05, compiled=1.05, cupy=1.0, share=0.92
    ),
    "sums of rows, 16384x16384": Row(
        row_sums, lambda: [random(2**14, 2**14)], 2**16,
        jax=1.05, compiled=1.05, cupy=1.0, share=0.90,
    ),
    "sums of columns, 16384x16384": Row(
        column_sums, lambda: [random(2**14, 2**14)], 2**16,
        jax=1.05, compiled=1.05, cupy=1.0, share=0.85,
    ),
    "x / sum, 2^26": Row(shares, lambda: [random(2**26)], jax=1.05),
    "cumsum, 2^26": Row(totals, lambda: [random(2**26)], 2**28, jax=1.0, cupy=1.0),
    "transpose, 16384x16384": Row(turned, lambda: [random(2**14, 2**14)], 4 * BIG),
    "product, 4096": Row(product, lambda: (random(4096, 4096), random(4096, 4096))),
    "network step, 1024x2048x4, batch 1024": Row(
        network_step,
        lambda: (random(1024, 1024), random(1024, 64),
                 *layers(1024, 2048, 2048, 2048, 64)),
        jax=1.05, compiled=1.05,
    ),
    "network step, 2-16-1, batch 8": Row(
        network_step, lambda: (random(8, 2), random(8, 1), *layers(2, 16, 1)),
        jax=1.0, compiled=1.0,
    ),
    "hidden Markov model, 1,000 steps": Row(
        chain_of_steps, lambda: (positive(16), positive(1000, 16), positive(16, 16)),
        jax=1.0,
    ),
    "convolutional network, step, batch 128": Row(
        conv_step,
        lambda: (*paper_programs.conv_images(128), *paper_programs.conv_params()),
        jax=1.3, compiled=1.3,
    ),
    "Newton-CG, quadratic, 1,000": Row(newton, lambda: [random()], jax=1.0),
    "x + x, 64": Row(lambda np, top: lambda x: x + x, lambda: [random(64)], jax=1.0),
}  # fmt: skip


def in_torch(torch):
    """Return the rows as PyTorch's users write them, by their names."""

    def norm(x, g, b):
        return torch.nn.functional.layer_norm(x, x.shape[1:], g, b)

    def bias_selu(x, b):
        z = x + b
        return 1.0507 * torch.where(z > 0, z, 1.6733 * (torch.exp(z) - 1))

    def operations(x):
        for _ in range(3):
            x = torch.abs(x * 1.1 - 0.5) + 0.25 * x
        return torch.tanh(x)

    def loss(weights, x, y):
        for w in weights[:-1]:
            x = torch.relu(x @ w)
        return ((x @ weights[-1] - y) ** 2).mean()

    def step(x, y, *weights):
        slopes = torch.func.grad(loss)(weights, x, y)
        return [w - 0.1 * s for w, s in zip(weights, slopes)]

    def slopes(x, g, b, c):
        def total(x, g, b):
            return (norm(x, g, b) * c).sum()

        return torch.func.grad(total, (0, 1, 2))(x, g, b)

    return {
        selu: bias_selu, chain: operations, layer_norm: norm, network_step: step,
        softmax: lambda x: torch.softmax(x, 1), total: lambda x: x.sum(),
        row_sums: lambda x: x.sum(1), column_sums: lambda x: x.sum(0),
        shares: lambda x: x / x.sum(), totals: lambda x: torch.cumsum(x, 0),
        turned: lambda x: (x.T * 2).contiguous(), product: lambda a, b: a @ b,
        layer_norm_slopes: slopes,
    }  # fmt: skip


class Contestant:
    """Whose program is measured: how arrays come to the card, and how one waits."""

    def __init__(self, name, make, put, wait, leaves):
        self.name, self.make, self.put = name, make, put
        self.wait, self.leaves = wait, leaves


def by_jax(name, top, gpu, jit):
    """Return a contestant with JAX's names."""

    def make(row):
        f = row.make(top.numpy, top)
        return f and jit(f)

    leaves = top.tree_util.tree_leaves
    return Contestant(
        name, make, lambda x: top.device_put(x, gpu), top.block_until_ready, leaves
    )


def by_torch(torch, name, compiled):
    """Return PyTorch, whose functions are compiled or not."""
    table = in_torch(torch)

    def make(row):
        f = table.get(row.make)
        return f and compiled(f)

    def leaves(x):
        found = x if isinstance(x, list | tuple) else [x]
        return [each.cpu().numpy() for each in found]

    return Contestant(
        name, make, lambda x: torch.from_numpy(x).cuda(),
        lambda _: torch.cuda.synchronize(), leaves,
    )  # fmt: skip


def by_cupy(cupy):
    """Return CuPy, operation by operation."""
    return Contestant(
        "cupy", lambda row: row.make(cupy, None), cupy.asarray,
        lambda _: cupy.cuda.Device().synchronize(), lambda x: [cupy.asnumpy(x)],
    )  # fmt: skip


def contestants():
    """Return those who are installed, ours first."""
    import minijax

    gpu = minijax.devices("gpu")[0]
    found = [by_jax("ours", minijax, gpu, minijax.jit)]
    for name in ("jax", "torch", "cupy"):
        try:
            package = importlib.import_module(name)
        except ImportError:
            print(f"without {name}, which is not installed")
            continue
        if name == "jax":
            package.config.update("jax_default_matmul_precision", "highest")
            found.append(by_jax("jax", package, package.devices()[0], package.jit))
        elif name == "torch":
            package.backends.cuda.matmul.allow_tf32 = False
            compiled = functools.partial(package.compile, dynamic=False)
            found.append(by_torch(package, "compiled", compiled))
            found.append(by_torch(package, "torch", lambda f: f))
        else:
            found.append(by_cupy(package))
    return found


def prepared(row, who, operands):
    """Return a function without arguments that does a row's work, or None."""
    f = who.make(row)
    if f is None:
        return None
    args = [who.put(x) for x in operands]
    return lambda: f(*args)


def agreed(name, who, run, reference):
    """Return numbers of a contestant's results; raise if the reference's are others."""
    results = [np.ravel(np.asarray(x)) for x in who.leaves(run())]
    found = [x[:: max(1, x.size // 2**20)] for x in results]
    for ours, theirs in zip(found, reference or found, strict=True):
        scale = np.abs(theirs).max()
        if not np.allclose(ours, theirs, rtol=1e-2, atol=1e-3 * scale):
            raise ValueError(f"{who.name} disagrees about {name!r}")
    return found


def seconds(who, run, calls):
    """Return the time of a call, of so many with one wait behind them."""
    start = time.perf_counter()
    for _ in range(calls):
        result = run()
    who.wait(result)
    return (time.perf_counter() - start) / calls


def measured(name, row, everyone):
    """Return medians of microseconds by contestant, and of our ratios to them."""
    operands, runs, reference = row.operands(), {}, None
    for who in everyone:
        try:
            run = prepared(row, who, operands)
            if run is not None:
                reference = agreed(name, who, run, reference)
                runs[who] = run
        except Exception as error:  # what one cannot do is no row of the others
            text = str(error).strip().splitlines() or [""]
            print(f"{name}: {who.name}: {type(error).__name__}: {text[0][:200]}")
    calls = {}
    for who, run in runs.items():
        seconds(who, run, 3)
        once = seconds(who, run, 3)
        calls[who] = int(min(MOST_CALLS, max(1, SECONDS / once)))
    times = [
        {who.name: seconds(who, run, calls[who]) for who, run in runs.items()}
        for _ in range(SAMPLES)
    ]
    us = {w: 1e6 * statistics.median(t[w] for t in times) for w in times[0]}
    ratios = {
        w: statistics.median(t["ours"] / t[w] for t in times)
        for w in us
        if "ours" in us and w != "ours"
    }
    moved = sum(x.nbytes for x in operands) + (row.written or 0)
    size = moved if row.written else None
    return {"us": us, "ratio": ratios, "bytes": size, "musts": row.musts}


def copied():
    """Return how many bytes a second a copy moves, read and written ones together."""
    from minijax import devices
    from minijax.cuda.driver import device_allocate

    card = devices("gpu")[0].card
    one, other = device_allocate(card, 2**30), device_allocate(card, 2**30)
    best = 1e9
    for _ in range(5):
        card.wait()
        start = time.perf_counter()
        for _ in range(20):
            other[:] = one
        card.wait()
        best = min(best, (time.perf_counter() - start) / 20)
    return 2 * 2**30 / best


def card_and_versions():
    """Return what the table was measured with: the card, the date, packages."""
    import minijax

    found = {}
    for name in ("jax", "torch", "cupy"):
        with suppress(ImportError):
            found[name] = importlib.import_module(name).__version__
    kind = minijax.devices("gpu")[0].device_kind
    found |= {"minijax": minijax.__version__, "python": platform.python_version()}
    return {"card": kind, "date": time.strftime("%Y-%m-%d"), "versions": found}


def line(name, found, row, bandwidth):
    """Return a row of the table as text; what is behind its must has a star."""
    names = ["jax", "compiled", "torch", "cupy"]
    cells = []
    for who in names:
        ratio = found["ratio"].get(who)
        late = ratio is not None and ratio > row.musts.get(who, 1e9)
        cells.append("       –" if ratio is None else f"{ratio:7.2f}{' *'[late]}")
    share = "      "
    if found["bytes"] and "ours" in found["us"]:
        part = found["bytes"] / (found["us"]["ours"] / 1e6) / bandwidth
        share = f"{part:5.2f}{' *'[part < row.musts.get('share', 0)]}"
    ours = found["us"].get("ours", float("nan"))
    return f"{name:40}{ours:10.1f} {share} " + " ".join(cells)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    everyone, table = contestants(), {}
    bandwidth, about = copied(), card_and_versions()
    about["bandwidth"] = bandwidth
    print(about["card"], f"a copy moves {bandwidth / 1e9:.0f} GB in a second")
    head = f"{'':40}{'µs':>10} share       jax compiled    torch     cupy"
    print(head, flush=True)
    for name, row in ROWS.items():
        if options.only in name:
            table[name] = measured(name, row, everyone)
            print(line(name, table[name], row, bandwidth), flush=True)
            if options.json:
                text = json.dumps({**about, "rows": table}, indent=1)
                options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
