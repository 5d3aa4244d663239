"""What the tests of passes have in common: running programs, comparing bits."""

import numpy as np

import minijax
from minijax.arrays.dtypes import float0
from minijax.jitting.compilation import Interpreter


def evaluated(closed, args):
    """Return the results of a program, equation by equation, as arrays."""
    with minijax.config.override("minijax_backend", "interpreter"):
        return Interpreter(closed)(*args)


def difference(x, y):
    """Say how two arrays differ in a single bit, or return None; NaN is NaN."""
    facts = [
        (a.shape, a.dtype, bool(getattr(a, "weak_type", False)))
        for a in (x, y)
        if hasattr(a, "aval")
    ]
    if len(set(facts)) > 1:
        return f"{facts[0]}, not {facts[1]}"
    x, y = np.asarray(x), np.asarray(y)
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return f"{x.dtype}{x.shape}, not {y.dtype}{y.shape}"
    if x.dtype == float0:
        return None
    parts = [(x.real, y.real), (x.imag, y.imag)] if x.dtype.kind == "c" else [(x, y)]
    for a, b in parts:
        same = (a == b) & (np.signbit(a) == np.signbit(b)) if _signed(a) else a == b
        same |= (a != a) & (b != b)
        if not same.all():
            where = tuple(map(int, np.argwhere(~same)[0]))
            return f"{x[where]}, not {y[where]}, at {where}"
    return None


def _signed(x):
    return x.dtype.kind in "fV"


def adds_in_loops(closed):
    """Return whether a loop of a program has, or feeds, a sum."""
    text = str(closed)
    return "scan[" in text and ("reduce_sum" in text or "dot_general" in text)
