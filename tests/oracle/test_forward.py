"""Forward mode against `jax.jvp`, rule by rule, also where derivatives have corners."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from minijax import lax  # noqa: E402
from minijax.forward_mode.jvp import instantiate_tangents, jvp_flat_fun  # noqa: E402
from tests.commands import some  # noqa: E402
from tests.forward_cases import CASES, ONCE, TIES, direction  # noqa: E402
from tests.test_forward_mode_jvp_trace import subsets  # noqa: E402

NARROW = {"float64": "float32", "complex128": "complex64"}
ALL = {**CASES, **ONCE, **{f"tie: {name}": case for name, case in TIES.items()}}


def narrow(x):
    return np.asarray(x, NARROW[x.dtype.name])


def both(name, moving):
    """Return `(value, tangent)` of minijax and of JAX, if the marked operands move."""
    call, operands = ALL[name]
    primals = [narrow(x) for x in operands]
    tangents = [
        direction(x) if m else None for x, m in zip(primals, moving, strict=True)
    ]
    values, slopes = jvp_flat_fun(lambda *xs: [call(lax, *xs)], primals, tangents)

    def f(*movers):
        rest = iter(movers)
        pairs = zip(primals, moving, strict=True)
        return call(jax.lax, *[next(rest) if m else x for x, m in pairs])

    movers = tuple(x for x, m in zip(primals, moving, strict=True) if m)
    theirs = jax.jvp(f, movers, tuple(t for t in tangents if t is not None))
    return (values[0], instantiate_tangents(values, slopes)[0]), theirs


@pytest.mark.parametrize("name", list(ALL))
def test_rule(name):
    for moving in some(subsets(len(ALL[name][1])), 2):
        ours, theirs = both(name, moving)
        for mine, jaxs in zip(ours, theirs, strict=True):
            mine, jaxs = np.asarray(mine), np.asarray(jaxs)
            assert mine.dtype == jaxs.dtype
            np.testing.assert_allclose(mine, jaxs, rtol=1e-4, atol=1e-5)
