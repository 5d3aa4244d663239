"""The programs of the corpus and their derivatives, on every backend that compiles."""

import itertools

import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit
from tests import corpus
from tests.backends_here import HERE
from tests.commands import some
from tests.kernel_cases import alike
from tests.red_zones import RedZones

COMPILING = sorted({*HERE} - {"interpreter", "python"})


def programs():
    """Functions and points, by name."""
    families = [(corpus.of_vectors, corpus.VECTOR), (corpus.of_matrices, corpus.MATRIX)]
    for family, point in families:
        for name, f in family(minijax, jnp).items():
            yield name, (f, point)


PROGRAMS = dict(programs())


@pytest.mark.parametrize(
    "name, backend", some(itertools.product(PROGRAMS, COMPILING), 2)
)
def test_corpus(name, backend):
    f, point = PROGRAMS[name]
    for g in (f, grad(lambda x: jnp.sum(jnp.real(f(x)) * 1.0))):
        reference = jit(g, backend="interpreter")(point)
        with RedZones() as zones:
            found = jit(g, backend=backend)(point)
        assert alike(found, reference, least=1e-2), name
        assert zones.problems == []
