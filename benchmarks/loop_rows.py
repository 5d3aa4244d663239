"""Rows about loops: small ones, recurrences, hidden Markov models, solvers."""

import numpy as np
from rows import row
from side_by_side import random


@row("while, a scalar, 1,000 steps", 0.7, 0.35)
def newton(jax):
    """Newton's method for the root of two, slowed down."""

    def far(state):
        return state[1] < 1000

    def closer(state):
        x, i = state
        return x - 0.01 * (x * x - 2.0) / (2.0 * x), i + 1

    function = jax.jit(lambda x: jax.lax.while_loop(far, closer, (x, 0)))
    start = jax.numpy.asarray(np.float32(1))
    return lambda: function(start)


@row("fori, a 3-vector, 1,000 steps", 0.7, 0.35)
def turning(jax):
    """A vector turned and squashed, again and again."""
    jnp = jax.numpy
    matrix, vector = jnp.asarray(0.3 * random(3, 3)), jnp.asarray(random(3))

    def step(i, v):
        return jnp.tanh(matrix @ v) + 0.1

    function = jax.jit(lambda v: jax.lax.fori_loop(0, 1000, step, v))
    return lambda: function(vector)


@row("scan, a recurrence, 1,000 steps", 0.7, 0.35)
def recurrence(jax):
    """A first-order recurrence, all of whose values are kept."""

    def step(h, ab):
        h = ab[0] * h + ab[1]
        return h, h

    rows = [jax.numpy.asarray(0.1 * random(1000, seed=seed)) for seed in (0, 1)]
    function = jax.jit(lambda a, b: jax.lax.scan(step, 0.0, (a, b))[1])
    return lambda: function(*rows)


@row("hidden Markov model, 16 states, 1,000 steps{}", (0.4, 0.6), (0.2, 0.3),
     "", ", gradient")  # fmt: skip
def hidden_markov_model(jax, variant):
    """The forward algorithm, and its gradient with respect to the transitions."""
    jnp = jax.numpy
    transitions = abs(random(16, 16))
    transitions = jnp.asarray(transitions / transitions.sum(1, keepdims=True))
    likelihoods = jnp.asarray(abs(random(1000, 16)) + 0.1)

    def log_likelihood(transitions, likelihoods):
        def step(belief, likelihood):
            belief = (belief @ transitions) * likelihood
            total = belief.sum()
            return belief / total, jnp.log(total)

        start = jnp.full(16, 1 / 16)
        return jax.lax.scan(step, start, likelihoods)[1].sum()

    function = jax.jit(jax.grad(log_likelihood) if variant else log_likelihood)
    return lambda: function(transitions, likelihoods)


@row("HMM fit, 20 gradient steps", 0.6, 0.3)
def fit(jax):
    """A hidden Markov model of 4 states fitted to 200 observations, as in the paper."""
    jnp = jax.numpy
    observations = jnp.asarray(abs(random(200, 4)) + 0.1)

    def loss(logits):
        weights = jnp.exp(logits)
        transitions = weights / weights.sum(1, keepdims=True)

        def step(belief, likelihood):
            belief = (belief @ transitions) * likelihood
            total = belief.sum()
            return belief / total, jnp.log(total)

        start = jnp.full(4, 1 / 4)
        return -jax.lax.scan(step, start, observations)[1].sum()

    def descend(i, logits):
        return logits - 0.01 * jax.grad(loss)(logits)

    function = jax.jit(lambda logits: jax.lax.fori_loop(0, 20, descend, logits))
    logits = jnp.asarray(random(4, 4))
    return lambda: function(logits)


@row("gradient of an RNN, 64 units, batch {}", (0.9, 0.7, 1.0), (0.6, 0.4, 0.8),
     1, 8, 64)  # fmt: skip
def recurrent_network(jax, batch):
    """The gradient of a recurrent network, through 100 steps."""
    jnp = jax.numpy
    w, b = jnp.asarray(0.1 * random(64, 64)), jnp.asarray(random(64))
    xs = jnp.asarray(random(100, batch, 64))

    def loss(w, b, xs):
        def step(h, x):
            return jnp.tanh(h @ w + x + b), None

        h, _ = jax.lax.scan(step, jnp.zeros(xs.shape[1:]), xs)
        return (h * h).sum()

    gradient = jax.jit(jax.grad(loss, (0, 1)))
    return lambda: gradient(w, b, xs)


def minimize(jax, f, x, outer, inner):
    """Truncated Newton: steps whose directions a few conjugate gradients find."""
    jnp = jax.numpy

    def newton_step(i, x):
        slope = jax.grad(f)(x)

        def curvature(v):
            return jax.jvp(jax.grad(f), (x,), (v,))[1]

        def conjugate_step(j, state):
            d, r, p, rr = state
            hp = curvature(p)
            scale = rr / jnp.maximum((p * hp).sum(), 1e-20)
            d, r = d + scale * p, r - scale * hp
            new = (r * r).sum()
            return d, r, r + new / jnp.maximum(rr, 1e-20) * p, new

        start = jnp.zeros_like(x), -slope, -slope, (slope * slope).sum()
        return x + jax.lax.fori_loop(0, inner, conjugate_step, start)[0]

    return jax.lax.fori_loop(0, outer, newton_step, x)


@row("Newton-CG, quadratic, n = {}", (0.2, 0.4, 1.1), (0.08, 0.2, 0.9), 10, 100, 1000)
def quadratic(jax, n):
    """Truncated Newton on a convex quadratic, the paper's first program."""
    jnp = jax.numpy
    root = random(n, n) / np.sqrt(n)
    matrix, b = jnp.asarray(root @ root.T + np.eye(n, dtype="float32")), random(n)

    def f(x):
        return 0.5 * x @ (matrix @ x) - jnp.asarray(b) @ x

    function = jax.jit(lambda x: minimize(jax, f, x, 2, 10))
    start = jnp.zeros(n)
    return lambda: function(start)


@row("Newton-CG, logistic regression, {}x{}", 0.9, 0.6, (100, 10), (1000, 50))
def logistic_newton(jax, examples, features):
    """Truncated Newton on a logistic regression, the paper's third program."""
    jnp = jax.numpy
    x = jnp.asarray(random(examples, features))
    y = jnp.asarray(np.sign(random(examples, seed=2)))

    def f(w):
        return jnp.log1p(jnp.exp(-y * (x @ w))).mean() + 0.005 * (w * w).sum()

    function = jax.jit(lambda w: minimize(jax, f, w, 3, 10))
    start = jnp.zeros(features)
    return lambda: function(start)
