"""Every stack of transformations of the corpus gives JAX's values, or its error.

JAX is asked once for each meaning (a linearized function is a jvp, and so on: see
`tests.corpus.meaning`), in 64 bits, for values, dtypes, weak types and classes of
errors; and once for each program and single transformation in 32 bits. Our programs
are emitted as Python here, which compiles faster; `tests/test_composition.py` compares
the same stacks on the default backend.
"""

import jax
import pytest

from minijax import config
from tests import composition

_width = []


@pytest.fixture(autouse=True)
def emitted_python():
    with config.override("minijax_backend", "python"):
        yield


def forget_other_width(bits):
    """Empty JAX's caches when the width changes: they mix constants of both widths."""
    if _width != [bits]:
        jax.clear_caches()
        _width[:] = [bits]


@pytest.mark.parametrize("name, part", composition.CASES)
def test_answers_are_jax_s(name, part):
    forget_other_width(64)
    found = list(composition.against_jax(name, part))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("name", composition.PROGRAMS)
def test_types_are_jax_s(name):
    forget_other_width(32)
    found = list(composition.in_32_bits(name))
    assert not found, "\n\n".join(found)
