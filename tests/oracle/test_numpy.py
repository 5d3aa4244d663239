"""`minijax.numpy`, operators, methods and indices against the real JAX."""

import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax.numpy  # noqa: E402
from tests import numpy_cases as cases  # noqa: E402
from tests.commands import LONG  # noqa: E402

TOLERANCES = {"float16": 2e-3, "float32": 5e-6, "complex64": 2e-5}


@pytest.fixture(scope="module")
def names():
    """The environments of the two libraries, ours first."""
    modules = minijax.numpy, jax.numpy
    return [cases.environment(module) for module in modules]


def answer(text, names):
    """The value of a call, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, dict(names))
    except Exception as error:
        return error


def difference(ours, theirs):
    """What differs between two answers, in words; None if nothing does."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        alike = isinstance(ours, type(theirs)) or isinstance(theirs, type(ours))
        return None if alike else "error"
    if isinstance(theirs, list | tuple):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return "length"
        pairs = zip(ours, theirs)
        return next((d for pair in pairs if (d := difference(*pair))), None)
    if hasattr(theirs, "aval"):
        return difference_of_arrays(ours, theirs)
    same = type(ours) is type(theirs) and (ours == theirs or ours != ours)
    return None if same else "value"


def difference_of_arrays(ours, theirs):
    """What differs between two arrays: type, weakness or numbers."""
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return "type"
    if ours.weak_type != theirs.weak_type and ours.dtype != bool:
        return "weakness"
    tolerance = TOLERANCES.get(ours.dtype.name, 0)
    numbers = [np.asarray(a).astype(np.complex128) for a in (ours, theirs)]
    close = np.allclose(*numbers, rtol=tolerance, atol=tolerance / 5, equal_nan=True)
    return None if close else "numbers"


@pytest.mark.parametrize("text", cases.calls())
def test_calls(text, names):
    ours, theirs = (answer(text, each) for each in names)
    assert not isinstance(theirs, Exception), theirs
    assert difference(ours, theirs) is None, f"{ours!r}, but JAX: {theirs!r}"


@pytest.mark.parametrize("text", cases.BAD)
def test_errors_have_the_classes_of_jax(text, names):
    ours, theirs = (answer(text, each) for each in names)
    assert isinstance(theirs, Exception)
    assert difference(ours, theirs) is None, f"{ours!r}, but JAX: {theirs!r}"


@pytest.mark.parametrize("part", range(23 if LONG else 10))
def test_every_function_on_every_kind_of_operand(part, names):
    """About five thousand calls; what is known to differ is in the table of cases.

    Here are ten of 23 parts, and in them every function: `LONG=1` takes all.
    """
    found = {}
    for text in [*cases.generated()][part::23]:
        ours, theirs = (answer(text, each) for each in names)
        if text not in cases.UNLIKE and not known(text):
            what = difference(ours, theirs)
            if what:
                found[text] = what, str(ours)[:80], str(theirs)[:80]
    assert not found


def known(text):
    """Tell whether a difference is listed in `differences.md`, or is JAX's own."""
    complex_minimum = text.startswith(("jnp.minimum(", "jnp.maximum("))
    return (complex_minimum and "odd" in text and ("c" in text or "1j" in text)) or (
        text.startswith(("jnp.logaddexp(", "jnp.hypot(", "jnp.arctan2("))
    )
