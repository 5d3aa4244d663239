"""Random programs with collectives in loops and branches: pmap = vmap = a loop.

    python -m tests.random_collectives --seed 0 --count 1000

A program is a list of instructions. It is run by `pmap` on devices, by `vmap` with an
axis name, and by a loop in NumPy in which all replicas take each instruction in turn.
"""

import random

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, jvp, lax, pmap, vmap
from tests.commands import options_of, reported

if __name__ == "__main__":  # tests have two devices
    minijax.config.update("jax_num_cpu_devices", 4)
N = min(4, minijax.local_device_count())  # replicas; each has values of shape (N, 3)
RING = [(j, (j + 1) % N) for j in range(N)]
PLAIN = "sin", "add", "mul", "sub"
TALK = (
    "psum", "pmean", "pmax", "turn", "gather", "scatter", "exchange", "index",
)  # fmt: skip
NESTED = "scan", "fori", "apart", "while", "alike"  # the last two ask all replicas


def random_body(draw, length, depth, talk=True):
    """Return a list of instructions: a name, two numbers, and bodies inside."""
    names = [*PLAIN, *TALK * 2] if talk else [*PLAIN]
    nested = NESTED if talk else NESTED[:3]
    found = []
    for _ in range(length):
        name = draw.choice([*names, *nested * 2] if depth else names)
        inside = talk and name != "apart"  # replicas part there, and would not meet
        bodies = [
            random_body(draw, 3, depth - 1, inside)
            for _ in range(2 if name in ("alike", "apart") else name in NESTED)
        ]
        found.append((name, draw.randrange(9), draw.randrange(9), bodies))
    return found


def has(body, kind):
    return any(name == kind or any(has(b, kind) for b in bs) for name, _, _, bs in body)


# ── by minijax, one replica ──────────────────────────────────────────────────


def traced(body, values):
    """Run instructions for one replica; return the last value."""
    values = [*values]
    for name, i, j, bodies in body:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append(jnp.tanh(TRACED[name](a, b, bodies)))
    return values[-1]


def _while(a, b, bodies):
    def go_on(state):
        k, c = state
        return (k < 3) & (lax.pmean(c.sum(), "i") < 4.0)

    def step(state):
        k, c = state
        return k + 1, traced(bodies[0], [c, b])

    return lax.while_loop(go_on, step, (0, a))[1]


def _branch(decide):
    def branch(a, b, bodies):
        one, other = (lambda a, b, body=body: traced(body, [a, b]) for body in bodies)
        return lax.cond(decide(a), one, other, a, b)

    return branch


TRACED = {
    "sin": lambda a, b, _: jnp.sin(a),
    "add": lambda a, b, _: a + b,
    "mul": lambda a, b, _: a * b,
    "sub": lambda a, b, _: a - 0.5 * b,
    "psum": lambda a, b, _: lax.psum(a * b, "i"),
    "pmean": lambda a, b, _: b - lax.pmean(a, "i"),
    "pmax": lambda a, b, _: lax.pmax(lax.stop_gradient(a), "i") * b,
    "turn": lambda a, b, _: lax.ppermute(a, "i", RING) - b,
    "gather": lambda a, b, _: lax.all_gather(a, "i")[:, 1] + b,
    "scatter": lambda a, b, _: lax.psum_scatter(a, "i") + b,
    "exchange": lambda a, b, _: lax.all_to_all(a, "i", 0, 0) * b,
    "index": lambda a, b, _: a * (lax.axis_index("i") - 1.5),
    "scan": lambda a, b, bodies: lax.scan(
        lambda c, row: (traced(bodies[0], [c, c * row]), None), a, b
    )[0],
    "fori": lambda a, b, bodies: lax.fori_loop(
        0, 2, lambda k, c: traced(bodies[0], [c, b * k]), a
    ),
    "while": _while,
    "alike": _branch(lambda a: lax.psum(a.sum(), "i") > 0.0),
    "apart": _branch(lambda a: a.sum() > 0.0),
}


# ── by a loop ────────────────────────────────────────────────────────────────


def looped(body, values):
    """Run instructions for a list of replicas; a value is a list with one for each."""
    values = [*values]
    for name, i, j, bodies in body:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append([np.tanh(x) for x in LOOPED[name](a, b, bodies)])
    return values[-1]


def each(f):
    return lambda a, b, bodies: [f(x, y) for x, y in zip(a, b)]


def _turned(a, b, _):
    return [a[(r - 1) % len(a)] - b[r] for r in range(len(a))]


def _scanned(a, b, bodies):
    for row in zip(*b):
        a = looped(bodies[0], [a, [x * y for x, y in zip(a, row)]])
    return a


def _counted(a, b, bodies):
    for k in range(2):
        a = looped(bodies[0], [a, [y * k for y in b]])
    return a


def _repeated(a, b, bodies):
    k = 0
    while k < 3 and np.mean([x.sum() for x in a]) < 4.0:
        a, k = looped(bodies[0], [a, b]), k + 1
    return a


def _alike(a, b, bodies):
    return looped(bodies[0 if sum(x.sum() for x in a) > 0 else 1], [a, b])


def _apart(a, b, bodies):
    ways = [bodies[0 if x.sum() > 0 else 1] for x in a]
    return [looped(way, [[x], [y]])[0] for way, x, y in zip(ways, a, b)]


LOOPED = {
    "sin": each(lambda x, y: np.sin(x)),
    "add": each(lambda x, y: x + y),
    "mul": each(lambda x, y: x * y),
    "sub": each(lambda x, y: x - 0.5 * y),
    "psum": lambda a, b, _: [sum(x * y for x, y in zip(a, b))] * len(a),
    "pmean": lambda a, b, _: [y - sum(a) / len(a) for y in b],
    "pmax": lambda a, b, _: [np.max(a, 0) * y for y in b],
    "turn": _turned,
    "gather": lambda a, b, _: [np.stack([x[1] for x in a]) + y for y in b],
    "scatter": lambda a, b, _: [sum(a)[r] + b[r] for r in range(len(a))],
    "exchange": lambda a, b, _: [
        np.stack([x[r] for x in a]) * b[r] for r in range(len(a))
    ],
    "index": lambda a, b, _: [a[r] * (r - 1.5) for r in range(len(a))],
    "scan": _scanned, "fori": _counted, "while": _repeated,
    "alike": _alike, "apart": _apart,
}  # fmt: skip


# ── all of them ──────────────────────────────────────────────────────────────


def check(seed):
    """Raise an AssertionError if the ways to run a program differ."""
    draw = random.Random(seed)
    body = random_body(draw, draw.randrange(3, 8), 2)
    x, y, dx, dy = np.random.default_rng(seed).normal(size=(4, N, N, 3)).astype("f4")

    def program(x, y):
        return traced(body, [x, y])

    ways = {
        "vmap": jit(vmap(program, axis_name="i")),
        "pmap": pmap(program, "i", devices=minijax.devices()[:N]),
    }
    expected = np.stack(looped(body, [list(x.astype("f8")), list(y.astype("f8"))]))
    for name, f in ways.items():
        assert_near(f(x, y), expected, f"seed {seed}, {name}: {body}")
    tangents = [jvp(f, (x, y), (dx, dy))[1] for f in ways.values()]
    assert_near(*tangents, f"seed {seed}, jvp: {body}", 2e-3)
    if not has(body, "while"):
        slopes = [grad(lambda x, f=f: (f(x, y) * dy).sum())(x) for f in ways.values()]
        assert_near(*slopes, f"seed {seed}, grad: {body}", 2e-3)


def assert_near(found, expected, what, tolerance=2e-4):
    found, expected = np.asarray(found, "f8"), np.asarray(expected, "f8")
    scale = max(1.0, np.abs(expected).max())
    assert found.shape == expected.shape, what
    assert np.abs(found - expected).max() <= tolerance * scale, what


def main():
    asked = options_of(__doc__, seed=0, count=100)
    wrong = []
    for seed in range(asked.seed, asked.seed + asked.count):
        try:
            check(seed)
        except Exception as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
    raise SystemExit(reported(f"{asked.count} programs", wrong))


if __name__ == "__main__":
    main()
