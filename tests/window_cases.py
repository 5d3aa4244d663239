"""Random convolutions and reductions of windows, and their values by plain loops.

python -m tests.window_cases --seed 0 --count 1000
"""

import argparse
import itertools

import numpy as np

import minijax
from minijax import lax

DTYPES = "float32 float32 float16 int8 int32 uint8 complex64".split()


def numbers(rng, shape, dtype):
    """An array of small whole numbers, so that sums are exact in any order."""
    x = rng.integers(-3, 4, shape).astype(float)
    if np.dtype(dtype).kind == "c":
        return (x + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return (x - x.min(initial=0) * (np.dtype(dtype).kind == "u")).astype(dtype)


def specs(rng, count):
    """Orders of the axes, as strings, tuples of axes, or None."""
    if rng.random() < 0.3:
        return None
    letters = "DHW"[:count]
    strings = ("".join(rng.permutation([*x, *letters])) for x in ("NC", "OI", "NC"))
    return tuple(strings)


def convolution(rng, dtype=None, large=False):
    """Operands and keyword arguments of a random convolution."""
    count = int(rng.integers(0, 4)) if not large else int(rng.integers(1, 3))
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    batches = int(rng.choice([1, 1, 2])) if groups == 1 else 1
    top = 40 if large else 5
    window = rng.integers(1, 5, count).tolist()
    space = [int(x) for x in rng.integers(0 if not large else 5, 9, count)]
    space = [1 if large and rng.random() < 0.3 else x for x in space]
    inner = int(rng.integers(0 if rng.random() < 0.1 else 1, top))
    shape = [int(rng.integers(1, 4)) * batches, inner * groups, *space]
    if rng.random() < 0.05:
        shape[0] = 0
    features = int(rng.integers(1, top)) * groups * batches
    how = {
        "window_strides": rng.integers(1, 4, count).tolist(),
        "padding": [(int(a), int(b)) for a, b in rng.integers(-1, 4, (count, 2))],
        "lhs_dilation": rng.choice([1, 1, 2, 3], count).tolist(),
        "rhs_dilation": rng.choice([1, 1, 2, 3], count).tolist(),
        "feature_group_count": groups,
        "batch_group_count": batches,
        "dimension_numbers": specs(rng, count),
    }
    if rng.random() < 0.3:
        how["padding"] = str(rng.choice(["SAME", "VALID", "SAME_LOWER"]))
        how["lhs_dilation"] = None
    elif (
        any(
            (n - 1) * d + 1 + a + b < 0
            for n, d, (a, b) in zip(space, how["lhs_dilation"], how["padding"])
        )
        or 0 in space
    ):
        how["padding"] = [(3, 3)] * count
    numbers_ = lax.conv_dimension_numbers(shape, shape, how["dimension_numbers"])
    dtype = dtype or str(rng.choice(DTYPES))
    back = [np.argsort(spec) for spec in numbers_]
    x = numbers(rng, shape, dtype).transpose(back[0])
    w = numbers(rng, [features, inner, *window], dtype).transpose(back[1])
    return x, w, how


def by_loops(x, w, how):
    """A convolution by loops over windows and over their elements."""
    specs = lax.conv_dimension_numbers(x.shape, w.shape, how["dimension_numbers"])
    count, kind = x.ndim - 2, np.result_type(x.dtype, np.int8)
    kind = {"f": np.float64, "c": np.complex128}.get(kind.kind, np.int64)
    x, w = x.transpose(specs[0]).astype(kind), w.transpose(specs[1]).astype(kind)
    strides, ones = how["window_strides"], [1] * count
    base, gaps = how["lhs_dilation"] or ones, how["rhs_dilation"] or ones
    width = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], gaps)]
    pads = how["padding"]
    if isinstance(pads, str):
        pads = lax.padtype_to_pads(x.shape[2:], width, strides, pads)
    room = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], base)]
    full = np.zeros((*x.shape[:2], *[n + 20 for n in room]), kind)
    inside = tuple(slice(10, 10 + n, d) for n, d in zip(room, base))
    full[:, :, *inside] = x
    counts = [
        max((n + a + b - m) // s + 1, 0)
        for n, (a, b), m, s in zip(room, pads, width, strides)
    ]
    batches, groups = how["batch_group_count"], how["feature_group_count"]
    inner, each = w.shape[1], w.shape[0] // (groups * batches)
    out = np.zeros((x.shape[0] // batches, w.shape[0], *counts), kind)
    for o in itertools.product(*map(range, counts)):
        for t in itertools.product(*map(range, w.shape[2:])):
            place = [
                10 + i * s + k * d - a
                for i, s, k, d, (a, _) in zip(o, strides, t, gaps, pads)
            ]
            column = full[(slice(None), slice(None), *place)]
            for i, (a, b) in enumerate(
                itertools.product(range(batches), range(groups))
            ):
                part = slice(i * each, (i + 1) * each)
                rows = column[
                    a * len(out) : (a + 1) * len(out), b * inner : (b + 1) * inner
                ]
                out[(slice(None), part, *o)] += rows @ w[(part, slice(None), *t)].T
    return out.transpose(np.argsort(specs[2]))


def differences(seed):
    """What one random convolution gives that loops do not, evaluated and compiled."""
    rng = np.random.default_rng(seed)
    x, w, how = convolution(rng, large=seed % 3 == 0)
    wanted = by_loops(x, w, how).astype(x.dtype)

    def call(x, w):
        return lax.conv_general_dilated(x, w, **how)

    for name, f in ("evaluated", call), ("compiled", minijax.jit(call)):
        found = np.asarray(f(x, w))
        if found.dtype != x.dtype or not np.array_equal(found, wanted):
            yield f"seed {seed}, {name}: {x.dtype} {x.shape} {w.shape} {how}"


def pool(rng, dtype=None):
    """An array and the arguments of a random fold of windows."""
    count = int(rng.integers(1, 4))
    shape = [int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 9, count)]
    dtype = dtype or str(rng.choice("float32 float16 int8 int32 uint8".split()))
    pads = [(int(a), int(b)) for a, b in rng.integers(0, 3, (count, 2))]
    base = rng.choice([1, 1, 2], count).tolist()
    room = [(n - 1) * d + 1 if n else 0 for n, d in zip(shape, base)]
    if rng.random() < 0.2:  # take elements away
        pads = [(-(n > 2), high) for n, (_, high) in zip(room, pads)]
    args = [
        [int(n) for n in rng.integers(1, 5, count)],
        [int(n) for n in rng.integers(1, 4, count)],
        str(rng.choice(["SAME", "VALID"])) if rng.random() < 0.3 else pads,
        base,
        rng.choice([1, 1, 2], count).tolist(),
    ]
    return numbers(rng, shape, dtype), args


def pooled_by_loops(x, ufunc, init, args):
    """A fold of windows by loops; the padding holds `init`."""
    sizes, strides, pads, base, gaps = args
    width = [(n - 1) * d + 1 for n, d in zip(sizes, gaps)]
    if isinstance(pads, str):
        pads = lax.padtype_to_pads(x.shape, width, strides, pads)
    room = [(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, base)]
    full = np.full([n + 20 for n in room], init, x.dtype)
    full[tuple(slice(10, 10 + n, d) for n, d in zip(room, base))] = x
    for axis, (n, (low, high)) in enumerate(zip(room, pads)):
        outside = np.r_[0 : 10 + max(-low, 0), 10 + n - max(-high, 0) : n + 20]
        full[(slice(None),) * axis + (outside,)] = init
    totals = zip(room, pads, width, strides)
    counts = [max((n + a + b - m) // s + 1, 0) for n, (a, b), m, s in totals]
    out = np.full(counts, init, x.dtype)
    for o in itertools.product(*map(range, counts)):
        for t in itertools.product(*map(range, sizes)):
            steps = zip(o, strides, t, gaps, pads)
            place = tuple(10 + i * s + k * d - a for i, s, k, d, (a, _) in steps)
            out[o] = ufunc(out[o], full[place])
    return out


def pool_differences(seed):
    """What random folds of windows give that loops do not."""
    rng = np.random.default_rng(seed)
    x, args = pool(rng)
    least, most = (np.iinfo if x.dtype.kind in "iu" else np.finfo)(x.dtype), None
    least, most = (least.min, least.max) if x.dtype.kind in "iu" else (-np.inf, np.inf)
    folds = [
        (np.add, lax.add, 0),
        (np.maximum, lax.max, least),
        (np.minimum, lax.min, most),
        (np.add, lambda x, y: x + y, 0),
        (np.maximum, lax.max, 1),
    ]
    for number, (ufunc, fold, init) in enumerate(folds):
        wanted = pooled_by_loops(x, ufunc, init, args)
        init = np.asarray(init, x.dtype)[()]

        def call(x, fold=fold, init=init):
            return lax.reduce_window(x, init, fold, *args)

        for name, f in ("evaluated", call), ("compiled", minijax.jit(call)):
            found = np.asarray(f(x))
            if found.dtype != x.dtype or not np.array_equal(found, wanted):
                yield f"seed {seed}, fold {number}, {name}: {x.dtype} {x.shape} {args}"


def main():
    """Draw convolutions, and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    args, found = parser.parse_args(), 0
    for seed in range(args.seed, args.seed + args.count):
        for line in itertools.chain(differences(seed), pool_differences(seed)):
            found += 1
            print(line)
    print(f"{args.count} drawn, {found} differ")
    return int(found > 0)


if __name__ == "__main__":
    raise SystemExit(main())
