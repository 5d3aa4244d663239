"""The programs of JAX's first paper, each for any package with JAX's functions.

R. Frostig, M. Johnson and C. Leary, "Compiling machine learning programs via high-level
tracing" (SysML 2018). The sizes are ours. A function here is given a package (minijax,
`jax`, or one of `rows.Eager`, whose loops are Python's) and returns what is measured.
"""

import numpy as np
from side_by_side import random


def conjugate_gradients(jax, curvature, b, rounds, enough):
    """Solve ``curvature(d) = b`` until the squared residual is at most `enough`.

    Returns the solution, and how many rounds it took. A direction in which the function
    does not bend upwards ends the search; in the first round it is the solution.
    """
    jnp = jax.numpy

    def going(state):
        k, _, _, _, left, upwards = state
        return (k < rounds) & (left > enough) & upwards

    def turn(state):
        k, d, r, p, left, _ = state
        bent = curvature(p)
        bend = p @ bent
        upwards = bend > 0
        scale = jnp.where(upwards, left / bend, jnp.where(k == 0, 1.0, 0.0))
        d, r = d + scale * p, r - scale * bent
        new = r @ r
        return k + 1, d, r, r + new / left * p, new, upwards

    start = 0, jnp.zeros_like(b), b, b, b @ b, True
    k, d, *_ = jax.lax.while_loop(going, turn, start)
    return d, k


def newton_cg(jax, f, x, steps, rounds):
    """Minimise by truncated Newton steps; return the end, losses and counts of rounds.

    Directions are found by conjugate gradients whose products with the Hessian are the
    jvp of the gradient, to a precision that grows as the gradient shrinks. A step is
    halved until the function falls (Armijo).
    """
    jnp = jax.numpy

    def step(x, _):
        value, slope = jax.value_and_grad(f)(x)
        size = jnp.sqrt(slope @ slope)
        enough = (jnp.minimum(0.1, size) * size) ** 2

        def curvature(v):
            return jax.jvp(jax.grad(f), (x,), (v,))[1]

        d, count = conjugate_gradients(jax, curvature, -slope, rounds, enough)

        def too_far(state):
            t, j = state
            return (f(x + t * d) > value + 1e-4 * t * (slope @ d)) & (j < 12)

        t, _ = jax.lax.while_loop(too_far, lambda s: (s[0] / 2, s[1] + 1), (1.0, 0))
        return x + t * d, jnp.stack([value, count])

    x, history = jax.lax.scan(step, x, jnp.arange(float(steps)))
    return x, history


def quadratic(jax, n):
    """A convex quadratic in n unknowns: the function, and where to begin."""
    root = random(n, n) / np.float32(np.sqrt(n))
    matrix = jax.numpy.asarray(root @ root.T + 0.1 * np.eye(n, dtype="float32"))
    b = jax.numpy.asarray(random(n, seed=1))
    return lambda x: 0.5 * x @ (matrix @ x) - b @ x, np.zeros(n, "float32")


def logistic(jax, examples, features):
    """Logistic regression of random examples, whose labels are a noisy line's."""
    jnp, x = jax.numpy, random(examples, features)
    y = np.sign(x @ random(features, seed=1) + random(examples, seed=2))
    x, y = jnp.asarray(x), jnp.asarray(y)

    def loss(w):
        return jnp.log1p(jnp.exp(-y * (x @ w))).mean() + 0.005 * (w @ w)

    return loss, np.zeros(features, "float32")


def observed(states, symbols, length):
    """Observations of a random hidden Markov model, integers."""
    rng = np.random.default_rng(0)
    moves = rng.dirichlet(np.full(states, 0.3), states)
    shows = rng.dirichlet(np.full(symbols, 0.3), states)
    state, seen = 0, []
    for _ in range(length):
        state = rng.choice(states, p=moves[state])
        seen.append(rng.choice(symbols, p=shows[state]))
    return np.array(seen, "int32")


def markov(jax, states, symbols, length):
    """The surprise of a hidden Markov model at observations: the forward algorithm."""
    jnp, seen = jax.numpy, jax.numpy.asarray(observed(states, symbols, length))

    def softmax(z):
        e = jnp.exp(z)
        return e / e.sum(1, keepdims=True)

    def loss(x):
        moves = softmax(x[: states * states].reshape(states, states))
        shows = softmax(x[states * states :].reshape(states, symbols))

        def step(belief, likely):
            belief = (belief @ moves) * likely
            total = belief.sum()
            return belief / total, jnp.log(total)

        begin = moves[0] * 0 + 1 / states
        logs = jax.lax.scan(step, begin, shows.T[seen])[1]
        return -logs.mean() + 0.001 * (x @ x)

    return loss, np.float32(0.5) * random(states * (states + symbols))


def selu(jax, x):
    """The activation of the paper's layer."""
    jnp = jax.numpy
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


CHANNELS = [(3, 32, 1), (32, 32, 1), (32, 32, 2), (32, 64, 1), (64, 64, 1), (64, 64, 2)]
CHANNELS += [(64, 64, 1), (64, 64, 1), (64, 10, 1)]
WINDOWS = [3] * 7 + [1] * 2
LAYOUT = ("NHWC", "HWIO", "NHWC")


def conv_params():
    """Nine windows of an all-convolutional network for images of 32 x 32 pixels."""
    shapes = [(k, k, m, n) for k, (m, n, _) in zip(WINDOWS, CHANNELS)]
    return [random(*s) / np.float32(np.sqrt(np.prod(s[:3]))) for s in shapes]


def conv_images(batch):
    """Random images of CIFAR-10's shape, and labels: no real ones."""
    labels = np.eye(10, dtype="float32")[np.arange(batch) % 10]
    return random(batch, 32, 32, 3), labels


def conv_step(jax, average=lambda slopes: slopes):
    """Return a step of gradient descent: ``step(params, images, labels)``.

    Args:
      average: what happens to gradients, such as a mean over replicas.
    """
    jnp = jax.numpy

    def loss(params, x, y):
        for w, (_, _, stride) in zip(params, CHANNELS):
            x = jax.lax.conv_general_dilated(
                x, w, (stride, stride), "SAME", dimension_numbers=LAYOUT
            )
            x = jnp.maximum(x, 0)
        scores = x.mean((1, 2))
        scores = scores - scores.max(1, keepdims=True)
        logs = scores - jnp.log(jnp.exp(scores).sum(1, keepdims=True))
        return -(logs * y).sum(1).mean()

    def step(params, x, y):
        slopes = average(jax.grad(loss)(params, x, y))
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, slopes)

    return step
