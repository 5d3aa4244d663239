"""Functions made of other functions of NumPy, against the real JAX."""

import jax
import numpy as np
import pytest

import minijax
from tests.catalogue_cases import ARRAYS, CALLS, answer, calls, leaves

TEXTS = [text for module in CALLS for text in calls(module)]


def difference(ours, theirs):
    """What differs between two leaves, in words; None if nothing does."""
    if not hasattr(theirs, "aval"):
        return None if ours == theirs else "value"
    types = [
        (x.shape, x.dtype, x.dtype != bool and x.weak_type) for x in (ours, theirs)
    ]
    if types[0] != types[1]:
        return "type"
    tolerance = 2e-3 if ours.dtype == np.float16 else 2e-5
    numbers = [np.asarray(x).astype(complex) for x in (ours, theirs)]
    close = np.allclose(*numbers, rtol=tolerance, atol=tolerance / 5, equal_nan=True)
    return None if close else "numbers"


@pytest.mark.parametrize("text", TEXTS)
def test_calls(text):
    ours, theirs = (answer(text, lib.numpy) for lib in (minijax, jax))
    if isinstance(theirs, Exception):
        said = str(theirs)  # by a line of JAX's own, of an argument without axes
        inside = " unsized " in said or said == "tuple index out of range"
        expected = (type(theirs), ValueError) if inside else type(theirs)
        assert isinstance(ours, expected) or isinstance(theirs, type(ours)), ours
        return
    pairs = zip(leaves(ours), leaves(theirs), strict=True)
    assert not any(difference(*pair) for pair in pairs), f"{ours!r}, JAX: {theirs!r}"


SMOOTH = """
    sinc logaddexp2 copysign fmax fmin nan_to_num modf nansum nanmean nanvar nanprod
    nanmax nancumsum average diff trapezoid vecdot cross kron rot90
    insert delete ediff1d unstack angle gradient unwrap cov corrcoef interp piecewise
    apply_along_axis
""".split()
ARGUMENTS = {
    "insert": (1, 2.0),
    "delete": (1,),
    "kron": (ARRAYS["x"],),
    "cross": (ARRAYS["y"],),
    "interp": (ARRAYS["t"], ARRAYS["t"] ** 2, "extrapolate"),
    "piecewise": ([ARRAYS["y"] > 0], [lambda x: x * x, lambda x: 3 * x]),
}
TWO = ("logaddexp2", "copysign", "fmax", "fmin", "vecdot")


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("how", ["grad", "jvp", "vmap", "jit"])
def test_transformations(name, how):
    x = ARRAYS["x"][:, :3] if name == "cross" else ARRAYS["x"]
    rest = (ARRAYS["y"],) if name in TWO else ARGUMENTS.get(name, ())
    rest = (ARRAYS["y"][:, :3],) if name == "cross" else rest
    along = name == "apply_along_axis"

    def result(library):
        function = getattr(library.numpy, name)

        def f(x):
            given = (lambda row: row * row.sum(), 1, x) if along else (x, *rest)
            return sum((leaf * leaf).sum() for leaf in leaves(function(*given)))

        if how == "grad":
            return library.grad(f)(x)
        if how == "jvp":
            return library.jvp(f, (x,), (x,))[1]
        return library.jit(f)(x) if how == "jit" else library.vmap(f)(np.stack([x, -x]))

    assert np.allclose(
        result(minijax), result(jax), rtol=2e-4, atol=2e-5, equal_nan=True
    )
