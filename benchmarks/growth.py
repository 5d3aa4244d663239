"""How the time to compile grows: programs of twelve kinds, larger and larger.

    python benchmarks/growth.py [--json FILE] [--only TEXT]
    python benchmarks/growth.py --memory [--only TEXT]

From the call of a new function to its first result, with nothing on the disk, beside
`jax.jit`: seconds of the processor on one core, the smaller of two tries, each with
numbers of its own, so that no cache has seen the program. A line has the ratio to JAX's
time at each size, and the exponent with which our time grows between the two largest
sizes: 1 is a program that takes twice the time when it is twice as long. Each kind is
there plain, as a gradient, and under `vmap`. With ``--memory`` it is the memory that
ours takes at most in place of the time.
"""

import importlib
import itertools
import math
import os
import resource
import sys
import time
from pathlib import Path

os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "0"

from side_by_side import options, pin, random, versions, write_json

# isort: split
import numpy as np  # after the settings of side_by_side, which NumPy reads

MUST = 1.0  # of JAX's time
GROWTH = 1.15  # the exponent of n log n where a thousand becomes two thousand
LONG, LONGEST = 1.0, 4.0  # seconds: it is tried once; no larger size is tried
KINDS = {}
SERIES = {}


def kind(name, *sizes):
    """Return a decorator that adds a kind of program, in three forms.

    Args:
      name: of the kind.
      *sizes: the sizes that are measured.

    What is decorated is a function ``make(jax, size, number)`` that returns a function
    with one result, or a list, and its arguments. The number is in the program, so that
    two of them differ.
    """

    def add(make):
        KINDS[name] = make
        for form, change in FORMS.items():
            SERIES[f"{name}{form}"] = sizes, (make, change)
        return make

    return add


def plain(jax, f):
    """The function as it is."""
    return f


def gradient(jax, f):
    """The gradient of the sum of all results."""

    def total(*args):
        results = jax.tree_util.tree_leaves(f(*args))
        return sum(jax.numpy.sum(result) for result in results)

    return jax.grad(total)


def batched(jax, f):
    """The function of three examples at once."""

    def of_three(*args):
        three = [1.0, 0.5, 0.25]
        tripled = jax.tree_util.tree_map(
            lambda x: jax.numpy.stack([x * k for k in three]), args
        )
        return jax.vmap(f)(*tripled)

    return of_three


FORMS = {"": plain, ", gradient": gradient, ", batched": batched}


def vector(jax, size=100, seed=0):
    """A vector of either package."""
    return jax.numpy.asarray(random(size, seed=seed))


@kind("equations", 50, 200, 800, 3200)
def equations(jax, size, number):
    """One elementwise operation after the other."""
    jnp = jax.numpy

    def f(x):
        y = x
        for k in range(size // 5):
            y = jnp.tanh(y * (1 + number / 1000)) + x[k % 4] * y
            y = y - jnp.where(y > 2, y, 0.5)
        return y

    return f, [vector(jax)]


@kind("outputs", 32, 125, 500, 2000)
def outputs(jax, size, number):
    """Many results of one argument."""

    def f(x):
        return [x * (k + number / 1000) for k in range(size)]

    return f, [vector(jax)]


@kind("leaves", 32, 125, 500, 2000)
def leaves(jax, size, number):
    """Many arrays in one argument, as the parameters of a network."""
    shared = vector(jax)

    def f(tree):
        return jax.tree_util.tree_map(lambda x: x - (number / 1000) * x * x, tree)

    return f, [{f"leaf {k}": shared for k in range(size)}]


@kind("nested calls", 4, 8, 16, 32)
def nested(jax, size, number):
    """`jit` in `jit` in `jit`."""

    def inside(depth):
        if not depth:
            return lambda x: x * (1 + number / 1000)
        inner = jax.jit(inside(depth - 1))
        return lambda x: jax.numpy.sin(inner(x)) + depth

    return inside(size), [vector(jax)]


@kind("calls", 8, 32, 128, 512)
def calls(jax, size, number):
    """Calls of one jitted function, one after the other."""

    def f(x):
        inner = jax.jit(lambda x, k: jax.numpy.sin(x) * k + number / 1000)
        for k in range(size):
            x = inner(x, float(k))
        return x

    return f, [vector(jax)]


def chain(jax, width, length, number):
    """A chain of products of square matrices."""
    a = jax.numpy.asarray(random(width, width) / math.sqrt(width))

    def f(x):
        for _ in range(length):
            x = x @ a
        return x * (1 + number / 1000)

    return f, [a]


@kind("20 products of this width", 2, 3, 4, 6, 8, 10, 12, 13, 14, 16, 17, 20, 28, 40)
def products(jax, size, number):
    """Twenty products of small square matrices."""
    return chain(jax, size, 20, number)


for _width in (4, 8, 16, 32):

    @kind(f"products {_width} wide", 10, 20, 40, 80, 160)
    def product_chain(jax, size, number, width=_width):
        """A chain of products of one width."""
        return chain(jax, width, size, number)


@kind("unrolled recurrent steps", 8, 32, 128, 512)
def unrolled(jax, size, number):
    """A recurrent network, whose loop is Python's."""
    w = jax.numpy.asarray(random(20, 20) / 5)
    xs = jax.numpy.asarray(random(size, 20, seed=1))

    def f(w, xs):
        h = xs[0]
        for k in range(size):
            h = jax.numpy.tanh(w @ h * (1 + number / 1000) + xs[k])
        return h

    return f, [w, xs]


@kind("branches", 4, 16, 64, 256)
def branches(jax, size, number):
    """One `cond` after the other."""

    def f(x):
        for k in range(size):
            x = jax.lax.cond(
                x[k % 100] > 0, lambda x: x * (0.9 + number / 1000),
                lambda x, k=k: jax.numpy.sin(x) + k, x,
            )  # fmt: skip
        return x

    return f, [vector(jax)]


@kind("branches of one switch", 4, 16, 64, 256)
def switch(jax, size, number):
    """A `switch` with many branches."""

    def f(x):
        sides = [lambda x, k=k: jax.numpy.sin(x) * (k + number) for k in range(size)]
        return jax.lax.switch((x[0] * 10).astype("int32"), sides, x)

    return f, [vector(jax)]


@kind("scans", 2, 8, 32, 128)
def scans(jax, size, number):
    """One `scan` after the other."""
    xs = jax.numpy.asarray(random(10, 20, seed=1))

    def f(x, xs):
        for k in range(size):

            def step(x, row, k=k):
                return jax.numpy.tanh(x * (1 + number / 1000) + row + k), None

            x, _ = jax.lax.scan(step, x, xs)
        return x

    return f, [vector(jax, 20), xs]


@kind("slices", 16, 64, 256, 1024)
def slices(jax, size, number):
    """Parts of an array, each of which goes into a sum."""
    x = vector(jax, size + 8)

    def f(x):
        total = x[:8] * (1 + number / 1000)
        for k in range(size):
            total = total * 0.5 + x[k : k + 8]
        return total

    return f, [x]


@kind("concatenations", 8, 32, 128, 512)
def concatenations(jax, size, number):
    """One concatenation after the other."""
    jnp = jax.numpy

    def f(x):
        for _ in range(size):
            x = jnp.concatenate([x[50:] * (1 + number / 1000), jnp.sin(x[:50])])
        return x

    return f, [vector(jax)]


@kind("parts of one concatenation", 16, 64, 256, 1024)
def pieces(jax, size, number):
    """Many parts, of one concatenation."""

    def f(x):
        return jax.numpy.concatenate([x * (k + number / 1000) for k in range(size)])

    return f, [vector(jax, 8)]


@kind("reductions", 8, 32, 128, 512)
def reductions(jax, size, number):
    """One sum over all after the other."""

    def f(x):
        for _ in range(size):
            x = x * (1 + number / 1000) - x.mean()
        return x

    return f, [vector(jax)]


@kind("softmaxes", 8, 32, 128)
def softmaxes(jax, size, number):
    """Softmax over rows, one after the other."""

    def f(x):
        for _ in range(size):
            x = jax.nn.softmax(x * (1 + number / 1000), axis=-1)
        return x

    return f, [jax.numpy.asarray(random(10, 20))]


@kind("gathers", 8, 32, 128)
def gathers(jax, size, number):
    """Numbers at computed places, again and again."""
    places = jax.numpy.asarray(np.random.default_rng(0).integers(0, 100, 100))

    def f(x):
        for _ in range(size):
            x = x[places] * (1 + number / 1000)
        return x

    return f, [vector(jax)]


_numbers = itertools.count(1)


def seconds(jax, make, change, size):
    """Return the processor's seconds from a new function to its first result."""
    function, args = make(jax, size, next(_numbers))
    function = jax.jit(change(jax, function))
    start = time.process_time()
    jax.block_until_ready(function(*args))
    return time.process_time() - start


def less_of_two(*what):
    """Return the smaller of two times; a long one is measured once."""
    first = seconds(*what)
    return first if first > LONG else min(first, seconds(*what))


def measured(packages, sizes, series):
    """Return the seconds of the packages, by sizes.

    JAX, which comes last, is left out where a smaller size has taken it long, and all
    are where it has taken us long.
    """
    found, asked = {}, [*packages]
    for package in packages:  # what a package imports late is not measured
        seconds(package, *series, sizes[0])
    for size in sizes:
        found[size] = [less_of_two(package, *series, size) for package in asked]
        if found[size][-1] > LONG:
            asked = packages[:1]
        if found[size][0] > LONGEST:
            break
    return found


def exponent(found):
    """Return the power of the size with which our time grows at the end."""
    [(small, [less, *_]), (large, [more, *_])] = [*found.items()][-2:]
    return math.log(more / less) / math.log(large / small)


def megabytes(package, series, least, size):
    """Return the memory that compiling takes at most, beyond that for the least size.

    It is measured in a child, which begins with what this process has.
    """
    end, start = os.pipe()
    if not os.fork():
        seconds(package, *series, least)  # libraries are mapped anew
        before = int(Path("/proc/self/statm").read_text().split()[1])
        seconds(package, *series, size)
        most = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(start, str(most - before * resource.getpagesize()).encode())
        os._exit(0)
    os.close(start)
    os.wait()
    with os.fdopen(end) as file:
        return max(1.0, int(file.read()) / 2**20)  # less is not told apart


def memory(package, sizes, series):
    """Return the megabytes by sizes, up to one that takes long."""
    found = {}
    for size in sizes[1:]:
        start = time.perf_counter()
        found[size] = [megabytes(package, series, sizes[0], size)]
        if len(found) > 1 and time.perf_counter() - start > LONGEST:
            break
    return found


def memory_line(name, found):
    """Return a series of megabytes as a line of text."""
    power = exponent(found)
    cells = " ".join(f"{size}:{mb:.1f}" for size, [mb] in found.items())
    return f"{name:36}{'growth' if power > GROWTH else '':7}{power:6.2f}  {cells}"


def print_memory(chosen):
    """Print the table of megabytes."""
    package = importlib.import_module("minijax")
    print(f"{'':36}{'':7}{'power':>6}  megabytes, by size")
    for name, (sizes, series) in SERIES.items():
        if chosen.only in name:
            seconds(package, *series, sizes[0])  # what is imported late
            print(memory_line(name, memory(package, sizes, series)), flush=True)


def line(name, found):
    """Return a series as a line of text."""
    ratios = {size: each[0] / each[1] for size, each in found.items() if each[1:]}
    power, worst = exponent(found), max(ratios.values())
    cells = " ".join(f"{size}:{ratio:.2f}" for size, ratio in ratios.items())
    ours = found[max(found)][0]
    mark = "BEHIND" if worst > MUST else "growth" if power > GROWTH else ""
    return f"{name:36}{mark:7}{worst:6.2f}{power:7.2f}{ours:8.2f} s  {cells}"


def main():
    """Print the table."""
    by_memory = "--memory" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--memory"]
    chosen = options(__doc__)
    if by_memory:
        return print_memory(chosen)
    packages = [importlib.import_module(name) for name in ("minijax", "jax")]
    pin()
    head, found = versions(packages), {}
    print(", ".join(f"{name} {version}" for name, version in head.items()))
    print(f"{'':36}{'':7}{'worst':>6}{'power':>7}{'ours':>10}  ours / JAX, by size")
    for name, (sizes, series) in SERIES.items():
        if chosen.only in name:
            found[name] = measured(packages, sizes, series)
            print(line(name, found[name]), flush=True)
            if chosen.json:
                write_json(chosen.json, head, found)


if __name__ == "__main__":
    main()
