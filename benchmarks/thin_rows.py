"""Rows about products that are no big squares, and folds that are not along rows."""

from rows import row
from side_by_side import random

# Sizes of the operands: rows of the left, terms of the sums, columns of the right.
THIN = [
    (8, 100_000, 8), (100_000, 8, 8), (100_000, 3, 16), (4, 4096, 4096),
    (16, 1024, 1024), (3, 64, 100_000), (1024, 1024, 4), (2000, 2, 2000),
    (2000, 4, 2000), (2000, 8, 2000), (1000, 8, 64), (64, 4, 64),
]  # fmt: skip


@row("thin product, {} x {} x {}", 1.0, 0.8, *THIN, by_numpy=True)
def thin_product(jax, rows, terms, columns):
    """A product of two matrices, with one size that is small or very large."""
    a = jax.numpy.asarray(random(rows, terms))
    b = jax.numpy.asarray(random(terms, columns, seed=1))
    multiply = jax.jit(jax.numpy.matmul)
    return lambda: multiply(a, b)


@row("sum of 200 x 200 x 200 over {}", 1.0, 0.8, ((0,),), ((1,),), ((0, 1),),
     ((0, 2),), ((1, 2),), by_numpy=True)  # fmt: skip
def sum_over(jax, axes):
    """A sum over one or two of three axes."""
    x = jax.numpy.asarray(random(200, 200, 200))
    added = jax.jit(lambda x: x.sum(axes))
    return lambda: added(x)


@row("softmax of columns, {} x {}", 1.0, 0.8, (1000, 1000), (4096, 256), (128, 8192),
     by_numpy=True)  # fmt: skip
def column_softmax(jax, rows, columns):
    """A softmax along the first axis of a matrix."""
    jnp, x = jax.numpy, jax.numpy.asarray(random(rows, columns))

    def softmax(x):
        powers = jnp.exp(x - x.max(0))
        return powers / powers.sum(0)

    softmax = jax.jit(softmax)
    return lambda: softmax(x)


@row("min-plus product, {}", 1.0, 0.8, 64, 128, 192, 256, by_numpy=True)
def min_plus(jax, size):
    """The lengths of shortest ways of two steps."""
    a, b = (jax.numpy.asarray(random(size, size, seed=seed)) for seed in (0, 1))
    shortest = jax.jit(lambda a, b: (a[:, :, None] + b[None]).min(1))
    return lambda: shortest(a, b)
