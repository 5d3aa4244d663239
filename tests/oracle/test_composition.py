"""Stacks of transformations of the corpus give JAX's values, or its error.

JAX is asked once for each meaning (a linearized function is a jvp, and so on: see
`tests.corpus.meaning`), in 64 bits, for values, dtypes, weak types and classes of
errors; and once for each program and single transformation in 32 bits. Here is every
18th meaning and every third transformation, others for the next program; `LONG=1` and
`python -m tests.composition --jax` take all. Our programs are emitted as Python here,
which compiles faster; `tests/test_composition.py` compares stacks on the default
backend.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from minijax import config
from tests import composition
from tests.commands import LONG

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def narrow():
    """A process that has never seen 64 bits.

    JAX 0.10.2 mixes constants of both widths, and `clear_caches` does not help.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield pool


def problems(search, *arguments, **options):
    """Return what a search finds if our programs are emitted Python."""
    with config.override("minijax_backend", "python"):
        return list(search(*arguments, **options))


@pytest.mark.parametrize("name, part", composition.CASES)
def test_answers_are_jax_s(name, part):
    found = problems(composition.against_jax, name, part, every=1 if LONG else 27)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("name", composition.PROGRAMS)
def test_types_are_jax_s(narrow, name):
    every = 1 if LONG else 3
    found = narrow.submit(problems, composition.in_32_bits, name, every=every).result()
    assert not found, "\n\n".join(found)
