"""Faults that were mended, put back while a block runs: batteries have to find them.

    with half_as_square_root():
        assert battery_finds_something()

Programs that were compiled before keep their code, so a mutant clears the caches when
it comes and when it goes.
"""

from contextlib import contextmanager
from unittest import mock

import numpy as np

import minijax
from minijax import lax
from minijax.arrays.array import def_shape_and_impl, eval_rules, impl_rules, shape_rules
from minijax.lax.arithmetic import astype
from minijax.numpy import ufuncs as arithmetic
from minijax.python_backend.codegen import expression_rule, python_rules
from tests.mutants import fresh_caches


@contextmanager
def uncounted_places():
    """`argmax` and `argmin` wrap around where the index dtype cannot number an axis."""

    def anything(*args):
        return True

    places = [
        "minijax.lax.reductions.check_places",
        "minijax.python_backend.codegen_rules.fits_index_dtype",
        "minijax.kernels.lowering.fits_index_dtype",
    ]
    one, two, three = [mock.patch(place, anything) for place in places]
    with fresh_caches(), one, two, three:
        yield


@contextmanager
def overflowing_round():
    """`jnp.round` to decimals multiplies in the dtype of its operand."""

    def faulty(x, decimals):
        if decimals == 0:
            return lax.round(x, 1)
        aval = minijax.typeof(x)
        factor = astype(10.0**decimals, aval.dtype, aval.weak_type)
        return lax.div(lax.round(lax.mul(x, factor), 1), factor)

    with fresh_caches(), mock.patch.object(arithmetic, "_round", faulty):
        yield


@contextmanager
def half_as_square_root():
    """``(-inf) ** 0.5`` is NaN when it is evaluated, as NumPy's `power` has it."""
    rules = [eval_rules, impl_rules, python_rules]
    kept = [table[lax.pow_p] for table in rules]
    with fresh_caches():
        def_shape_and_impl(
            lax.pow_p, shape_rules[lax.pow_p], lambda xp, x, y: np.power(x, y)
        )
        python_rules[lax.pow_p] = expression_rule(
            lambda w, eqn, x, y: f"np.power({x}, {y})"
        )
        try:
            yield
        finally:
            for table, rule in zip(rules, kept):
                table[lax.pow_p] = rule


MUTANTS = [uncounted_places, overflowing_round, half_as_square_root]
