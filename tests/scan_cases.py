"""Loops to try rules on: each a function of one vector of three numbers."""

import numpy as np

import minijax.numpy as jnp
from minijax import lax

X = np.float32([0.4, -1.2, 0.7])
ROWS = jnp.asarray(np.float32([0.5, 1.0, -0.3, 0.2]))
TABLE = jnp.asarray(np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3))
MATRIX = jnp.asarray(np.float32([[0.3, -0.2, 0.1], [0.5, 0.1, 0.0], [-0.4, 0.2, 0.6]]))


def running_product(x):
    return lax.scan(lambda c, a: (c * x + a, c), x, ROWS)


def backwards(x):
    return lax.scan(lambda c, a: (jnp.sin(c) + a, c * a), x, TABLE, reverse=True)


def only_xs(x):
    return lax.scan(lambda c, a: (c * jnp.cos(a), (a * c).sum()), 1.0 + x, TABLE * x)


def late_motion(x):
    """The second carry begins to move when the first one has reached it."""

    def step(carry, a):
        first, second, count = carry
        return (a * x, first + second, count + 1), second

    return lax.scan(step, (jnp.zeros(3), jnp.zeros(3), 0), TABLE)[0][:2]


def invariants(x):
    def step(c, a):
        scale = jnp.exp(jnp.sin(x))
        return c * scale * a + jnp.ones(3), scale.sum() * c

    return lax.scan(step, x, TABLE)


def cell(w, h, a):
    return jnp.tanh(w @ h + a)


def recurrent(x):
    w = MATRIX * x
    return lax.scan(lambda h, a: (cell(w, h, a), h.sum()), x, TABLE)


def nested(x):
    def outer(c, a):
        d, ys = lax.scan(lambda d, b: (jnp.sin(d) * c + b, d), c * a, TABLE)
        return d, ys.sum(0)

    return lax.scan(outer, x, TABLE)


def trees(x):
    def step(c, a):
        return {"p": c["q"] * a["u"], "q": c["p"] + x}, (c, [a["v"]])

    xs = {"u": TABLE, "v": ROWS}
    return lax.scan(step, {"p": x, "q": 2.0 * x}, xs)


def no_steps(x):
    return lax.scan(lambda c, a: (c * a, c), x, TABLE[:0])


def no_carry(x):
    return lax.map(lambda a: jnp.sin(a * x), TABLE)


def batches(x):
    return lax.map(lambda a: jnp.sin(a * x).sum(), TABLE, batch_size=3)


def counted(x):
    return lax.fori_loop(1, 4, lambda i, c: c * x / i, x)


CASES = {
    f.__name__: f
    for f in (
        running_product,
        backwards,
        only_xs,
        late_motion,
        invariants,
        recurrent,
        nested,
        trees,
        no_steps,
        no_carry,
        batches,
        counted,
    )
}
