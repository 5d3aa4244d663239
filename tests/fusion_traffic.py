"""What fusion leaves of programs: kernels, bytes that they move, operations.

    python -m tests.fusion_traffic               # what has become more, or less
    python -m tests.fusion_traffic --record      # write the table anew
    python -m tests.fusion_traffic --texts       # with a hash of each program as well

The programs are those of the corpus with their derivatives and batches, random ones,
those of the table of goals, and a few on large arrays; the table of what was left of
each stands in `tests/data/fusion_traffic.txt`. A change of fusion that is none of its
decisions leaves all rows, and all hashes, as they are.
"""

import hashlib
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import minijax
import minijax.cpu_backend.backend
import minijax.numpy as jnp
from minijax import grad, make_jaxpr, value_and_grad
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.ir import bytes_accessed, flops_and_transcendentals
from minijax.kernels.lowering import Launch, lower
from minijax.passes.pipeline import simplify
from tests import corpus, fusion_cases
from tests.commands import options_of

TABLE = Path(__file__).parent / "data" / "fusion_traffic.txt"
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def softmax(x):
    """Each row of a matrix as shares of one."""
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x):
    """Each row of a matrix with mean 0 and variance 1."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def cross_entropy(x, y):
    """The loss of scores beside shares."""
    top = x.max(-1, keepdims=True)
    sums = jnp.log(jnp.exp(x - top).sum(-1)) + top[..., 0]
    return (sums - (x * y).sum(-1)).mean()


def loss(w, x, y):
    """The running example of the book."""
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


def shifted(x):
    """Differences of neighbours."""
    e = jnp.exp(x.reshape(-1))
    return e[1:] - e[:-1]


def adam(p, g):
    """A step of an optimiser."""
    m, v = 0.9 * p + 0.1 * g, 0.99 * p + 0.01 * g * g
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def large_programs():
    """Names, functions and operands: arrays that do not fit into a cache."""
    x = jnp.asarray(np.ones((700, 900), "float32"))
    long, row = jnp.ones((4, 100_000)), x[0]
    square, w = x[:700, :700], jnp.ones((900, 50))
    sums = {
        "softmax": softmax,
        "layer norm": layer_norm,
        "gelu": lambda x: 0.5 * x * (1 + jnp.tanh(0.8 * (x + 0.044 * x**3))),
    }
    for name, f in sums.items():
        for shape, operand in (("rows", x), ("long rows", long)):
            yield f"{name}, {shape}", f, (operand,)
            yield f"{name}, {shape}, gradient", grad(_summed(f)), (operand,)
        yield f"{name}, columns", lambda x, f=f: f(x.T).T, (x,)
    yield "cross entropy", cross_entropy, (x, x)
    yield "cross entropy, gradient", value_and_grad(cross_entropy), (x, x)
    yield "loss", loss, (w, x, jnp.ones((700, 50)))
    yield "loss, gradient", value_and_grad(loss), (w, x, jnp.ones((700, 50)))
    yield "adam", adam, (x, x)
    yield "neighbours", shifted, (x,)
    yield "column norm", lambda x: (x - x.mean(0)) / x.std(0), (x,)
    yield "shares of all", lambda x: x / x.sum(), (x,)
    yield "x + x.T", lambda x: x + x.T, (square,)
    yield "softmax of x + x.T", lambda x: softmax(x + x.T), (square,)
    yield "bias", lambda x, b: jnp.exp(x + jnp.exp(b)), (x, row)
    yield "sums both ways", lambda x: (x.sum(0), (x * x).sum(1)), (x,)
    yield "padded", lambda x: jnp.pad(jnp.exp(x), 1) * 2, (x,)
    yield "argmax", lambda x: jnp.argmax(jnp.exp(x).T, 0), (x,)


def _summed(f):
    return lambda x: (f(x) * x).sum()


def staged():
    """Pairs of a name and a program without waste."""
    table = corpus.transformations(minijax)
    for name, (f, point) in corpus.programs(minijax).items():
        for stack in fusion_cases.STACKS:
            try:
                g = corpus.apply(table, stack, f)
                closed = make_jaxpr(lambda x, g=g: jnp.asarray(g(x)))(point)
            except Exception:  # not every program has every derivative
                continue
            yield " ".join([*stack, name]), simplify(closed)
    for name, f, operands in large_programs():
        yield name, simplify(make_jaxpr(f)(*operands))
    chance = fusion_cases.Chance(7)
    for number in range(200):
        f, operands = chance.program()
        yield f"random {number}", simplify(make_jaxpr(f)(*operands))


class _Stop(Exception):
    """The program has been seen, and need not be compiled."""


def programs_of_rows():
    """Pairs of a name of a row of the table of goals, and its first program."""
    sys.path.insert(0, str(BENCHMARKS))
    import array_rows  # noqa: F401
    import loop_rows  # noqa: F401
    import network_rows  # noqa: F401
    from rows import ROWS

    # What makes keys is compiled once; a row should not take it for its own program.
    minijax.random.normal(minijax.random.key(0), (2,))
    seen, kept = [], minijax.cpu_backend.backend.fuse

    def stop(program, *rest):
        seen.append(program)
        raise _Stop

    minijax.cpu_backend.backend.fuse = stop
    try:
        for name, row in ROWS.items():
            with minijax.enable_x64(row.wide):
                try:
                    row.make(minijax)()
                except _Stop:
                    yield name, seen.pop()
    finally:
        minijax.cpu_backend.backend.fuse = kept


def programs():
    """Pairs of a name and a program that was not fused."""
    yield from ((name, lower(closed)) for name, closed in staged())
    yield from programs_of_rows()


def summary(program):
    """How many kernels, bytes, flops and transcendental functions, as a tuple."""
    kernels = [step.kernel for step in program.walk() if isinstance(step, Launch)]
    counts = [flops_and_transcendentals(kernel) for kernel in kernels]
    return (
        len(kernels),
        sum(sum(bytes_accessed(kernel)) for kernel in kernels),
        *[sum(c[kind] for c in counts) for kind in ("flops", "transcendentals")],
    )


def found(texts=False):
    """The rows of all programs by their names; how many steps; seconds in `fuse`."""
    rows, steps, seconds = {}, 0, 0.0
    for name, program in programs():
        start = time.process_time()
        fused = fuse(program)
        seconds += time.process_time() - start
        steps += sum(1 for _ in program.walk())
        code = hashlib.sha256(str(fused).encode()).hexdigest()[:8]
        rows[name] = (*summary(fused), *([code] if texts else []))
    return rows, steps, seconds


def recorded():
    """The rows of the table by their names."""
    rows = {}
    for line in TABLE.read_text().splitlines()[1:]:
        *numbers, name = line.split(None, 4)
        rows[name] = tuple(map(int, numbers))
    return rows


def write(rows):
    """Write the table."""
    lines = [" ".join(map(str, [*row[:4], name])) for name, row in rows.items()]
    TABLE.write_text("\n".join(["kernels bytes flops functions name", *lines, ""]))


def differences(rows, table):
    """Lines about rows that are not as recorded."""
    return [
        f"{name}: {old} became {rows.get(name)}"
        for name, old in table.items()
        if rows.get(name, ())[:4] != old
    ]


def more(rows, table):
    """Names of programs with more kernels or bytes than recorded."""
    return [
        name
        for name, row in rows.items()
        if any(a > b for a, b in zip(row[:2], table.get(name, row)))
    ]


def main():
    """Print what has changed; 1 if a program has more kernels or bytes."""
    options = options_of(__doc__, record=False, texts=False)
    warnings.simplefilter("ignore")
    rows, steps, seconds = found(options.texts)
    if options.texts:
        print(*[f"{row[-1]} {name}" for name, row in rows.items()], sep="\n")
    if options.record:
        write(rows)
    table = recorded()
    print(*differences(rows, table), sep="\n")
    totals = [sum(column) for column in zip(*[row[:4] for row in rows.values()])]
    print(f"{len(rows)} programs: {totals[0]:,} kernels, {totals[1]:,} bytes,")
    print(f"{totals[2]:,} flops, {totals[3]:,} functions;")
    print(f"{steps:,} steps, {1e6 * seconds / steps:.1f} µs in fuse for each")
    return bool(more(rows, table))


if __name__ == "__main__":
    sys.exit(main())
