"""Draws exact programs of several kinds: small, wide, chains of small arrays, images.

    program = drawing(seed, "small")
    program.lines      # pairs of a name and an expression
    program.refused    # what was not as promised, texts

A line is tried as soon as it is drawn, so that its shape, dtype and numbers are known.
"""

import importlib
import math
import warnings
from typing import NamedTuple

import numpy as np

from tests.exact_calls import CHAIN, FUSABLE, IMAGED, STEPS
from tests.exact_values import Draw, Value

DTYPES = [
    *["float32"] * 6, *["int32"] * 2, *["complex64"] * 2, "float16", "bfloat16", "bool",
    "int8", "uint8", "int16", "uint16", "uint32",
]  # fmt: skip
WIDE = [*DTYPES, *"float64 float64 int64 uint64 complex128".split()]
FEW = [1, 2, 2, 3, 3, 4, 4, 6, 8, 9, 12]
MANY = [
    1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129,
    255, 257, 400, 1000, 1025,
]  # fmt: skip


class Kind(NamedTuple):
    """What programs of one kind are made of.

    Attributes:
      sizes: of axes.
      first: how many numbers an argument has at most.
      most: how many another value has.
      steps: of `exact_calls`.
      lengths: numbers of lines, from one to below another.
      dtypes: of arguments.
    """

    sizes: list
    first: int
    most: int
    steps: list
    lengths: tuple
    dtypes: list


KINDS = {
    "small": Kind(FEW, 300, 300, FUSABLE, (3, 12), DTYPES),
    "wide": Kind(MANY, 20_000, 60_000, STEPS, (3, 14), DTYPES),
    "chains": Kind(
        [1, 2, 2, 3, 4, 4, 6, 6, 8], 64, 64, CHAIN, (8, 30), ["float32"] * 4 + ["int32"]
    ),
    "images": Kind(MANY, 20_000, 60_000, IMAGED, (2, 6), ["float32"]),
}


class Drawing(NamedTuple):
    """A program.

    Attributes:
      inputs: from names to NumPy arrays.
      lines: pairs of a name and an expression.
      results: names of arguments and lines.
      refused: texts: an error, a bound that does not hold.
      rng: for what else is drawn.
    """

    inputs: dict
    lines: tuple
    results: tuple
    refused: list
    rng: np.random.Generator


def drawing(seed, kind, wide=False):
    """Return the `Drawing` of a seed; `wide` says that numbers may have 64 bits."""
    kind = KINDS[kind]
    draw = Draw(np.random.default_rng(seed), [], kind.most)
    shape = kind.sizes
    while math.prod(shape) > kind.first:
        shape = tuple(draw.one(kind.sizes) for _ in range(draw.below(1, 4)))
    shape = (*shape[:-1], 0) if draw.chance(0.02) else shape
    dtypes = WIDE if wide and kind.dtypes is DTYPES else kind.dtypes
    arguments = inputs(draw, shape, dtypes)
    lines = grown(draw, arguments, kind.steps, draw.below(*kind.lengths))
    names = [*arguments, *[name for name, _ in lines]]
    late = names[-6:] if draw.chance(0.5) else names
    results = names[-1:] + [draw.one(late) for _ in range(draw.below(0, 5))]
    results = tuple(dict.fromkeys(names if draw.chance(0.3) else results))
    return Drawing(arguments, tuple(lines), results, draw.refused, draw.rng)


def inputs(draw, shape, dtypes):
    """From names to one to three arrays, whose shapes often fit each other."""
    found, main = {}, draw.one(dtypes)
    for name in "abc"[: draw.below(1, 4)]:
        dtype = main if draw.chance(0.6) else draw.one(dtypes)
        found[name] = numbers(draw.rng, shape, dtype)
        shape = draw.one(
            [shape, shape, shape[1:], (*shape[:-1], 1), shape[-1:], shape[::-1]]
        )
        shape = shape or (1,)
    return found


def numbers(rng, shape, dtype):
    """Small whole numbers."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.integers(0 if dtype[0] == "u" else -4, 5, shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.integers(-4, 5, shape)
    if dtype == "bfloat16":
        dtype = importlib.import_module("ml_dtypes").bfloat16
    return np.asarray(x).astype(dtype)


def grown(draw, arguments, steps, length):
    """Return the lines of a program, as many as are found for a length."""
    asarray, lines = draw.package.names["jnp"].asarray, []
    draw.values = [Value(name, asarray(x), 0) for name, x in arguments.items()]
    for value in draw.values:
        value.bound = value.measured()
    for number in range(length):
        x = draw.values[-1] if draw.chance(0.5) else draw.one(draw.values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = draw.step(x, steps)
        if found is None:
            continue
        if not found.is_exact():
            draw.refused.append(f"{found}: not whole, or not below {found.bound}")
            continue
        value = Value(f"v{number}", found.array, found.measured())
        lines.append((value.text, found.text))
        draw.values.append(value)
    return lines
