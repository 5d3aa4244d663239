"""Rows of the table of goals: what is measured, and what it may take.

A row is a function from a package (`minijax`, or `jax`) to a function without
arguments that does the work once. Goals are ratios of times: minijax / `jax.jit`.
"""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One line of the table.

    Attributes:
      make: function from a package to the function that does the work once.
      must, goal: the ratio to JAX that has to be reached, and the one to hope for.
      wide: whether it is about 64 bits.
      by_numpy: whether NumPy can run the very same function, in place of a package.
      results: whether all packages compute the same arrays.
      samples: how many are taken, or None for the usual number.
      timed: whether the function returns its time in seconds itself.
      threads: how many are allowed; more than 1 are measured in another process.
    """

    make: object
    must: float
    goal: float
    wide: bool = False
    by_numpy: bool = False
    results: bool = True
    samples: int | None = None
    timed: bool = False
    threads: int = 1


ROWS = {}

# Rows of the guide that need chapters which are still to come.
LATER = {
}

# A package of which only the array functions are there: NumPy's.
as_package = SimpleNamespace(__name__="numpy", numpy=np, jit=lambda f, **_: f)


class Eager:
    """A package without `jit`: one operation after the other, loops in Python."""

    def __init__(self, package):
        self.package, self.lax = package, _PythonLoops(package)

    def __getattr__(self, name):
        return getattr(self.package, name)

    def jit(self, f, **_):
        """Return a function that runs as it is, in all stages."""
        return _Uncompiled(f)


class _Uncompiled:
    """A function of which all stages are the function."""

    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        return self.f(*args)

    def lower(self, *args):
        return self

    def compile(self):
        return self


class _PythonLoops:
    """The functions of `lax`, but for loops, which are Python's."""

    def __init__(self, package):
        self.package = package

    def __getattr__(self, name):
        return getattr(self.package.lax, name)

    def fori_loop(self, lower, upper, body, state):
        for i in range(lower, upper):
            state = body(i, state)
        return state

    def while_loop(self, goes_on, body, state):
        while goes_on(state):
            state = body(state)
        return state

    def scan(self, body, carry, xs, length=None):
        leaves, tree = self.package.tree_util.tree_flatten(xs)
        unflatten = self.package.tree_util.tree_unflatten
        kept = []
        for row in zip(*leaves) if leaves else [()] * length:
            carry, y = body(carry, unflatten(tree, row))
            kept.append(y)
        return carry, None if kept[0] is None else self.package.numpy.stack(kept)


def row(name, must, goal, *variants, **about):
    """Return a decorator that adds a row for each variant, or one without variants.

    Args:
      name: of the row; ``{}`` stands for the variant.
      must, goal: numbers, or tuples with one for each variant.
      *variants: what is given to the function behind the package.
      **about: what else a `Row` says.
    """

    def add(make):
        for place, variant in enumerate(variants or ((),)):
            bounds = [b[place] if isinstance(b, tuple) else b for b in (must, goal)]
            args = variant if isinstance(variant, tuple) else (variant,)

            def build(package, args=args):
                return make(package, *args)

            title = name.format(*args)
            ROWS[title] = Row(build, *bounds, **about)
        return make

    return add
