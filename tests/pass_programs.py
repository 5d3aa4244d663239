"""Random programs made of what passes look for, on the numbers that tell laws apart.

python -m tests.pass_programs --seed 0 --count 1000

A program is a dozen equations on arrays of one dtype, of small shapes, with empty axes
and axes of one among them; its literals are 0, -0.0, 1, -1, powers of two, infinities
and NaN. Each pass has to leave every bit of its results as it is.
"""

import argparse
import sys

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.arrays.dtypes import dtype_kind
from minijax.jaxprs.checker import check_jaxpr
from minijax.passes.pipeline import passes, simplify
from tests.pass_cases import adds_in_loops, difference, evaluated

EVERY = {**passes, "simplify": simplify}
DTYPES = """
    bool int8 int32 uint8 uint32 int64 uint64 float16 bfloat16 float32 float64
    complex64 complex128
""".split()
SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 3), (1, 3), (3, 1), (2, 0)]
SHAPES += [(2, 1, 3)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -8.0, 3.0, 0.1, 1e-42, 3e38]
FLOATS += [np.inf, -np.inf, np.nan, 65504.0, 2.0**-24]
UNARY = "neg abs sign square bitwise_not conj real imag".split()
UNARY += "floor round exp log sqrt".split()
BINARY = "add sub mul div max min and or xor rem shift_left".split()
MOVES = "transpose rev reshape slice pad concat broadcast".split()
COMPARE = "eq ne lt le gt ge".split()


def numbers(rng, dtype, shape):
    """Random numbers of a dtype, most of them bad ones."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        ends = np.iinfo(dtype)
        some = np.array([0, 1, 2, 3, 7, ends.max, ends.min, ends.max - 1], dtype)
        return rng.choice(some, shape)
    with np.errstate(all="ignore"):
        if kind == "c":
            x = rng.choice(FLOATS, shape) + 0j
            return x.astype(dtype) + (rng.choice(FLOATS, shape) * 1j).astype(dtype)
        return np.asarray(rng.choice(FLOATS, shape)).astype(dtype)


class Writer:
    """Calls random functions of lax on what it has, and keeps what comes of it."""

    def __init__(self, rng, dtype, values):
        self.rng, self.dtype, self.values = rng, dtype, [*values]

    def pick(self):
        """A value, mostly a late one."""
        place = int(len(self.values) * self.rng.random() ** 0.5)
        return self.values[min(place, len(self.values) - 1)]

    def number(self, shape=()):
        """An array that is one literal everywhere."""
        dtype = self.dtype
        return jnp.full(shape, numbers(self.rng, dtype, ())[()], dtype)

    def write(self):
        """Keep the result of one call; what the package refuses is not written."""
        how = getattr(self, self.rng.choice(HOWS))
        try:
            found = how(self.pick())
        except (TypeError, ValueError, NotImplementedError):
            return
        self.values += found if isinstance(found, list) else [found]

    def unary(self, x):
        return getattr(lax, self.rng.choice(UNARY))(x)

    def binary(self, x):
        name = self.rng.choice(BINARY)
        name = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}.get(
            name, name
        )
        others = [y for y in self.values if y.shape == x.shape and y.dtype == x.dtype]
        y = others[self.rng.integers(len(others))]
        if self.rng.random() < 0.6:
            y = self.number(x.shape)
            y = y if y.dtype == x.dtype else y.astype(x.dtype)
        x, y = (x, y) if self.rng.random() < 0.6 else (y, x)
        return getattr(lax, name)(x, y)

    def compare(self, x):
        name = self.rng.choice(COMPARE)
        y = x if self.rng.random() < 0.3 else self.number(x.shape).astype(x.dtype)
        found = getattr(lax, name)(x, y)
        if self.rng.random() < 0.5:
            found = lax.bitwise_not(found)
        if self.rng.random() < 0.3:
            which = lax.convert_element_type(found, "int32") * 2
            return lax.select_n(which, x, x, self.number(x.shape).astype(x.dtype))
        y = self.pick()
        same = y.shape == x.shape and y.dtype == x.dtype
        return [found, lax.select(found, x, y if same else lax.neg(x))]

    def power(self, x):
        return lax.integer_pow(x, int(self.rng.integers(-1, 4)))

    def move(self, x):
        return getattr(self, self.rng.choice(MOVES))(x)

    def transpose(self, x):
        return lax.transpose(x, tuple(map(int, self.rng.permutation(x.ndim))))

    def rev(self, x):
        axes = [axis for axis in range(x.ndim) if self.rng.random() < 0.5]
        return lax.rev(x, tuple(axes))

    def reshape(self, x):
        shapes = [(x.size,), (x.size, 1), (1, *x.shape), (1, x.size)]
        shapes += [y.shape for y in self.values if y.size == x.size]
        return lax.reshape(x, shapes[self.rng.integers(len(shapes))])

    def slice(self, x):
        rng = self.rng
        starts = [int(rng.integers(0, n // 2 + 1)) for n in x.shape]
        ends = [int(rng.integers(a, n + 1)) for a, n in zip(starts, x.shape)]
        if rng.random() < 0.7:
            ends = [n - int(a < n) for a, n in zip(starts, x.shape)]
        strides = [int(self.rng.integers(1, 4)) for _ in starts]
        return lax.slice(x, starts, ends, strides)

    def pad(self, x):
        config = [tuple(map(int, self.rng.integers(-1, 2, 2))) for _ in x.shape]
        config = [(*ends, int(self.rng.integers(0, 2))) for ends in config]
        return lax.pad(x, self.number().astype(x.dtype), config)

    def concat(self, x):
        axis = int(self.rng.integers(x.ndim)) if x.ndim else 0
        like = [y for y in self.values if y.dtype == x.dtype and y.ndim == x.ndim]
        fits = [
            y for y in like
            if [n for i, n in enumerate(y.shape) if i != axis]
            == [n for i, n in enumerate(x.shape) if i != axis]
        ]  # fmt: skip
        joined = lax.concatenate([x, fits[self.rng.integers(len(fits))]], axis)
        return [joined, lax.concatenate([joined, x], axis)]

    def broadcast(self, x):
        size = int(self.rng.choice([0, 1, 2, 2, 3, 3]))
        axes = tuple(range(1, x.ndim + 1))
        return lax.broadcast_in_dim(x, (size, *x.shape), axes)

    def convert(self, x):
        names = [self.dtype, self.dtype, self.rng.choice(DTYPES)]
        with np.errstate(all="ignore"):
            return lax.convert_element_type(x, names[self.rng.integers(3)])

    def reduce(self, x):
        names = "sum max min prod".split()
        axes = tuple(axis for axis in range(x.ndim) if self.rng.random() < 0.6)
        return getattr(lax, f"reduce_{self.rng.choice(names)}")(x, axes)

    def product(self, x):
        if x.ndim != 2:
            x = lax.reshape(x, (x.size, 1))
        return x.T @ x if self.rng.random() < 0.5 else x @ x.T

    def again(self, x):
        """A loop, or a branch, whose body is written in the same way."""
        rng, shape = self.rng, x.shape

        def body(*args):
            inner = Writer(rng, self.dtype, args)
            for _ in range(4):
                inner.write()
            found = [y for y in inner.values if (y.shape, y.dtype) == (shape, x.dtype)]
            return found[int(rng.integers(len(found)))]

        way, length = rng.integers(4), int(rng.integers(0, 4))
        y, seed = self.pick(), int(rng.integers(1 << 30))
        if way == 0:
            return lax.cond(
                bool(rng.integers(2)) if rng.random() < 0.3 else y.size > 1,
                lambda x: body(x, y),
                lambda x: body(x),
                x,
            )

        def step(c, row):
            nonlocal rng
            rng = np.random.default_rng(seed)
            return body(c, y), (y, c, row)

        if way == 1:
            axes = tuple(range(1, x.ndim + 1))
            rows = lax.broadcast_in_dim(x, (length, *shape), axes)
            c, stacks = lax.scan(step, x, rows)
            return [c, *stacks]
        return lax.fori_loop(0, length, lambda i, c: step(c, i)[0], x)


HOWS = ["binary"] * 5 + ["compare", "power", "unary", "unary", "reduce", "product"]
HOWS += ["move"] * 4 + ["convert", "convert", "again"]


def program(seed):
    """A random program, and its arguments."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(jnp.dtype(DTYPES[seed % len(DTYPES)]))
    shapes = [SHAPES[rng.integers(len(SHAPES))] for _ in range(2)]
    args = [numbers(rng, dtype, shape) for shape in (*shapes, shapes[0])]
    args = [jnp.asarray(x) for x in args]

    def f(*args):
        writer = Writer(rng, dtype, args)
        for _ in range(12):
            writer.write()
        return writer.values[len(args) :]

    return make_jaxpr(f)(*args), args


def about_the_same(x, y):
    """Whether two results differ by rounding."""
    x, y = np.asarray(x), np.asarray(y)
    rtol = 0.05 if dtype_kind(x.dtype) == "h" else 1e-5
    return x.shape == y.shape and np.allclose(x, y, rtol, 1e-6, equal_nan=True)


def wrong(seed, some=EVERY):
    """The passes that change what a program computes, each with what differs."""
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        closed, args = program(seed)
        before, found = evaluated(closed, args), {}
        for name, run in some.items():
            new = run(closed)
            check_jaxpr(new)
            after = evaluated(new, args)
            for place, pair in enumerate(zip(before, after, strict=True)):
                said = difference(*pair)
                if said and not (adds_in_loops(closed) and about_the_same(*pair)):
                    found[name] = f"result {place}: {said}"
        return found


def main(arguments=None):
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args(arguments)
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            found = wrong(seed)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        if found:
            bad += 1
            print(seed, DTYPES[seed % len(DTYPES)], found, flush=True)
        if seed % 100 == 99:
            minijax.clear_caches()
    print(f"{options.count} programs, {bad} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
