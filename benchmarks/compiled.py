"""Jitted minijax beside `jax.jit`: dispatch, training steps, loops.

    python benchmarks/compiled.py [--json FILE] [--only TEXT]

Ours is the default backend; `MINIJAX_BACKEND` chooses another.
"""

from side_by_side import main, random


def calls(jax):
    """A warmed call of next to nothing, and a training step of a tiny network."""
    jnp = jax.numpy
    a, b = jnp.asarray(random(4)), jnp.asarray(random(4, seed=1))
    x, y = jnp.asarray(random(8, 2)), jnp.asarray(random(8, 1))
    params = [
        {"w": jnp.asarray(random(*shape)), "b": jnp.zeros(shape[1])}
        for shape in ((2, 16), (16, 1))
    ]

    def loss(params, x, y):
        *hidden, last = params
        for layer in hidden:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return ((x @ last["w"] + last["b"] - y) ** 2).mean()

    @jax.jit
    def train_step(params, x, y):
        slopes = jax.grad(loss)(params, x, y)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, slopes)

    add = jax.jit(lambda a, b: a + b)
    return {
        "call, two arrays of 4": lambda: add(a, b),
        "step of a tiny network": lambda: train_step(params, x, y),
    }


def recurrent_networks(jax):
    """Gradients of a recurrent network of 64 units, for 100 steps."""
    jnp, lax = jax.numpy, jax.lax
    w, b = jnp.asarray(0.1 * random(64, 64)), jnp.asarray(random(64))

    def loss(w, b, xs):
        def step(h, x):
            return jnp.tanh(h @ w + x + b), None

        h, _ = lax.scan(step, jnp.zeros(xs.shape[1:]), xs)
        return (h * h).sum()

    gradient = jax.jit(jax.grad(loss, (0, 1)))

    def row(batch):
        xs = jnp.asarray(random(100, batch, 64))
        return lambda: gradient(w, b, xs)

    return {f"gradient of an RNN, batch {n}": row(n) for n in (1, 8, 64)}


def small_loops(jax):
    """Loops whose steps are a few numbers."""
    jnp, lax = jax.numpy, jax.lax
    start, vector = jnp.float32(1.0), jnp.asarray(random(3))
    matrix = jnp.asarray(0.3 * random(3, 3))
    decay, drive = jnp.asarray(0.1 * random(2, 1000))

    @jax.jit
    def newton(x):
        def far(state):
            return state[1] < 1000

        def closer(state):
            x, i = state
            return x - 0.01 * (x * x - 2.0) / (2.0 * x), i + 1

        return lax.while_loop(far, closer, (x, 0))

    @jax.jit
    def turning(v):
        return lax.fori_loop(0, 1000, lambda i, v: jnp.tanh(matrix @ v) + 0.1, v)

    @jax.jit
    def recurrence(a, b):
        def step(h, row):
            h = row[0] * h + row[1]
            return h, h

        return lax.scan(step, 0.0, (a, b))[1]

    @jax.jit
    def recurrence_by_pairs(a, b):
        def after(x, y):
            return y[0] * x[0], y[0] * x[1] + y[1]

        return lax.associative_scan(after, (a, b))[1]

    return {
        "while, a scalar, 1,000 steps": lambda: newton(start),
        "fori, a 3-vector, 1,000 steps": lambda: turning(vector),
        "scan, recurrence, 1,000 steps": lambda: recurrence(decay, drive),
        "associative scan, the same": lambda: recurrence_by_pairs(decay, drive),
    }


def hidden_markov_models(jax):
    """The forward algorithm for 16 states and 1,000 observations, and its gradient."""
    jnp, lax = jax.numpy, jax.lax
    transitions = abs(random(16, 16))
    transitions = jnp.asarray(transitions / transitions.sum(1, keepdims=True))
    likelihoods = jnp.asarray(abs(random(1000, 16)) + 0.1)

    def log_likelihood(transitions, likelihoods):
        def step(belief, likelihood):
            belief = (belief @ transitions) * likelihood
            total = belief.sum()
            return belief / total, jnp.log(total)

        return lax.scan(step, jnp.full(16, 1 / 16), likelihoods)[1].sum()

    forward, backward = jax.jit(log_likelihood), jax.jit(jax.grad(log_likelihood))
    return {
        "hidden Markov model": lambda: forward(transitions, likelihoods),
        "hidden Markov model, gradient": lambda: backward(transitions, likelihoods),
    }


def programs(jax):
    """All rows: names, and functions without arguments that do the work once."""
    families = calls, recurrent_networks, small_loops, hidden_markov_models
    return {name: f for family in families for name, f in family(jax).items()}


if __name__ == "__main__":
    main(programs, __doc__)
