"""Random programs at sizes where code changes its mind, with all memory guarded.

    python -m tests.edge_programs --seed 0 --count 100 [--backend cpu planned]

One axis of an argument is about as long as a few vectors, or a tile, or has one number
more or less; rows are visited in and out of order; numbers become narrower; arguments
lie in memory in many ways. A program is run by the backend between guard bytes
(`tests.red_zones`), and line by line by the interpreter. It runs in this process.
"""

import dataclasses
import sys
import warnings
from functools import partial

import numpy as np

import minijax
from minijax import jit
from tests.commands import options_of, reported
from tests.machine_programs import WAYS, Lines, grown
from tests.random_programs import GROUPS, difference, numbers
from tests.red_zones import LAYOUTS, RedZones

NARROW = "bool int8 uint8 int16 uint16 float16 bfloat16".split()
DTYPES = [*NARROW, *"int32 uint32 float32 float32 float32 complex64".split()]
WIDE = [*DTYPES, *"int64 uint64 float64 float64 complex128".split()]

LANES = 4, 8, 16, 32, 64
AROUND = [n * k + d for n in LANES for k in (1, 2, 3) for d in (-1, 0, 1)]
ONE_OVER = [n * k + 1 for n in LANES for k in (1, 2)] + [257, 577, 1025]
FEW = [1, 2, 3, 4, 5, 7]
MOST = 12_000  # numbers in a value

TURNED = [
    "jnp.transpose({x}, {permutation})", "({x} * 2 + 1).T", "jnp.flip({x}, {axes})",
    "jnp.swapaxes({x}, {axis}, {axis})", "jnp.concatenate([{x}, {x}], {axis})",
    "jnp.concatenate([{x}, {y}], {axis})", "jnp.stack([{x}, {x}], {axis})",
    "jax.vmap(lambda r: r * 2 + 1, {place}, {place})({x})", "jnp.tile({x}, 2)",
    "jax.vmap(lambda r: r[::-1], {place}, {place})({x})", "jnp.roll({x}, 1, {axis})",
    "jnp.pad({x}, 1)[..., :-1]", "{x}.reshape({factors})", "{x}[..., 1:]", "{x}[::-1]",
    "{x}[..., ::2]", "lax.rev({x}, ({place},))", "{x} + {x}.T",
]  # fmt: skip
NARROWED = [
    template.replace("KIND", dtype)
    for dtype in DTYPES
    for template in (
        "{x}.astype('KIND')", "({x} * 2 + 1).astype('KIND')", "{x}.astype('KIND').T",
        "jnp.transpose({x} * 2 + 1, {permutation}).astype('KIND')",
        "jnp.flip({x} + {o}, {axis}).astype('KIND')",
        "jnp.concatenate([{x}.astype('KIND'), {x}.astype('KIND')], {axis})",
        "{x}.sum({place}).astype('KIND')",
    )
]  # fmt: skip
FOLDED = [
    f"jnp.{name}({{x}}, {axis})"
    for name in "sum max min mean argmax argmin any var cumsum".split()
    for axis in ("{place}", "{axis}", "0")
] + [
    "{x} - jnp.max({x}, {place}, keepdims=True)",
    "jnp.exp({x} - jnp.max({x}, {place}, keepdims=True))", "{x} @ {x}.T", "{x}.T @ {x}",
    "{x} @ {y}", "lax.cummax({x}, {place})", "lax.cumsum({x}, {place}, reverse=True)",
    "lax.scan(lambda c, r: (c + r, c * 2), {x}[0], {x})[1]",
    "lax.fori_loop(0, 3, lambda i, c: c * 2 + i.astype(c.dtype), {x})",
]  # fmt: skip
EDGE_GROUPS = [TURNED, TURNED, NARROWED, NARROWED, FOLDED, *GROUPS]


@dataclasses.dataclass(frozen=True)
class Case:
    """A program, and how it is run.

    Attributes:
      inputs: from names to NumPy arrays.
      layouts: from names to those of `LAYOUTS`.
      lines: pairs of a name and an expression.
      wide: whether numbers of 64 bits are allowed.
      ways: of `WAYS`, or "again".
      apart: as for `RedZones`.
      backend: which one.
    """

    inputs: dict
    layouts: dict
    lines: tuple
    wide: bool
    ways: tuple
    apart: bool
    backend: str = "cpu"

    alone = ("plain",)  # a script of such ways calls the program

    def problems(self):
        """Return what goes wrong, a list of texts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.found()

    def found(self):
        """As `problems`."""
        found = []
        with minijax.enable_x64(self.wide), RedZones(self.apart) as zones:
            inputs = {
                name: zones.laid_out(x, self.layouts[name])
                for name, x in self.inputs.items()
            }
            program = Lines(inputs, self.lines)
            if not program.lines:
                return []
            for way in self.ways:
                wrong = [*self.run(program, way, zones)]
                guards, zones.problems = zones.check(), []
                found += [f"{way}: {text}" for text in [*wrong, *guards]]
        return found + zones.problems

    def run(self, program, way, zones):
        """Yield what goes wrong in one way."""
        if way == "donated":
            yield from program.donated(self.backend, zones.array)
        elif way == "again":
            yield from again(program, self.backend)
        else:
            yield from WAYS[way](program, self.backend)

    def smaller(self):
        """Yield simpler cases."""
        change = partial(dataclasses.replace, self)
        inputs, lines, layouts = self.inputs, self.lines, self.layouts
        if len(self.ways) > 1:
            yield from [change(ways=(way,)) for way in self.ways]
        for cut in range(len(lines)):
            yield change(lines=lines[:cut] + lines[cut + 1 :])
        for name in inputs if len(inputs) > 1 else ():
            yield change(
                inputs={n: x for n, x in inputs.items() if n != name},
                layouts={n: kind for n, kind in layouts.items() if n != name},
            )
        for name in [n for n, kind in layouts.items() if kind != "plain"]:
            yield change(layouts={**layouts, name: "plain"})
        if self.wide:
            yield change(wide=False)
        for size in sorted({n for x in inputs.values() for n in x.shape if n > 1}):
            for less in sorted({1, size // 2, size - 1}):
                cut = {name: cut_to(x, size, less) for name, x in inputs.items()}
                yield change(inputs=cut)
        if not all(map(is_tame, inputs.values())):
            yield change(inputs={name: tame(x) for name, x in inputs.items()})

    def script(self):
        """The text of a program that shows what goes wrong."""
        with minijax.enable_x64(self.wide):
            lines = Lines(self.inputs, self.lines).lines
        parts = [SCRIPT_HEAD]
        if self.wide:
            parts.append('jax.config.update("jax_enable_x64", True)')
        parts += [f"{name} = {as_text(x)}" for name, x in self.inputs.items()]
        parts += self.calls(lines) if self.ways == self.alone else self.in_ways(lines)
        return "\n".join(parts)

    def calls(self, lines):
        """Yield lines that call the program, here and by the interpreter."""
        names, wanted = ", ".join(self.inputs), ", ".join(self.returned(lines))
        yield f"def program({names}):"
        yield from [f"    {name} = {line}" for name, line in lines]
        yield f"    return [{wanted}]"
        yield f"print(jax.jit(program, backend='interpreter')({names}))"
        yield f"with RedZones({self.apart}) as zones:"
        laid = [f"zones.laid_out({n}, {kind!r})" for n, kind in self.layouts.items()]
        call = f"jax.jit(program, backend={self.backend!r})({', '.join(laid)})"
        yield f"    print({call})"
        yield "print(zones.problems)"

    def returned(self, lines):
        """The names of the results of lines."""
        return [name for name, _ in lines]

    def in_ways(self, lines):
        """Yield lines that run the program as this case does."""
        module, name = type(self).__module__, type(self).__name__
        inputs = ", ".join(f"{name!r}: {name}" for name in self.inputs)
        case = dataclasses.replace(self, lines=(*lines,))
        rest = [getattr(case, field.name) for field in dataclasses.fields(case)[1:]]
        yield f"from {module} import {name}"
        yield f"print({name}({{{inputs}}}, {', '.join(map(repr, rest))}).problems())"


def cut_to(x, size, less):
    """Return what remains of an array if all axes of one size have another."""
    return x[tuple(slice(less if n == size else n) for n in x.shape)]


def tame(x):
    """Return small whole numbers instead of those of an array."""
    return (np.arange(x.size) % 5 + 1).reshape(x.shape).astype(x.dtype)


def is_tame(x):
    """Return whether an array is small whole numbers."""
    return np.array_equal(x, tame(x))


SCRIPT_HEAD = """\
import numpy as np
import ml_dtypes
import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from tests.red_zones import RedZones
"""


def as_text(x):
    """An array as an expression."""
    if x.size > 64 and is_tame(x):
        numbers = f"(np.arange({x.size}) % 5 + 1).reshape{x.shape}"
        return f"{numbers}.astype({named(x.dtype)})"
    if x.dtype.name == "bfloat16":
        return f"{as_text(x.astype(np.float32))}.astype({named(x.dtype)})"
    if x.size <= 64:
        numbers = repr(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
        return f"np.array({numbers}, {x.dtype.name!r}).reshape{x.shape}"
    return f"np.frombuffer({x.tobytes()!r}, {x.dtype.name!r}).reshape{x.shape}"


def named(dtype):
    """A dtype as an expression."""
    return "ml_dtypes.bfloat16" if dtype.name == "bfloat16" else repr(dtype.name)


def again(program, backend):
    """Call a function often: by and by it is called in another way."""
    jitted = jit(program.function(), backend=backend)
    first = program.attempt(jitted, program.inputs)
    for _ in range(3):
        later = program.attempt(jitted, program.inputs)
        if problem := program.attempt(difference, later, first):
            yield problem


def shapes(rng):
    """Return a shape with a long axis, and shapes that fit it."""
    around = AROUND if rng.random() < 0.4 else ONE_OVER
    sizes = [int(n) for n in rng.choice(FEW, rng.integers(0, 3))]
    sizes.insert(rng.integers(len(sizes) + 1), int(rng.choice(around)))
    if rng.random() < 0.1:
        sizes[int(rng.integers(len(sizes)))] = int(rng.choice([0, 1, 33, 65]))
    shape = tuple(sizes)
    return [shape, shape, shape, shape[1:], (1,) * len(shape), shape[-1:], shape[::-1]]


def drawn(seed, backend="cpu"):
    """Return the `Case` of a seed."""
    rng, wide = np.random.default_rng(seed), bool(seed % 3 == 0)
    like, inputs = shapes(rng), {}
    for name in "abc"[: rng.integers(1, 4)]:
        dtype = str(rng.choice(WIDE if wide else DTYPES))
        inputs[name] = numbers(rng, like[rng.integers(len(like))], dtype)
    layouts = {name: str(rng.choice([*LAYOUTS])) for name in inputs}
    way = [*WAYS, "again"][rng.integers(len(WAYS) + 1)]
    with minijax.enable_x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = grown(rng, inputs, EDGE_GROUPS, int(rng.integers(1, 5)), MOST).lines
    ways = ("plain",) if way == "plain" else ("plain", way)
    return Case(inputs, layouts, tuple(lines), wide, ways, rng.random() < 0.8, backend)


def main():
    """Run from the command line."""
    options = options_of(__doc__, seed=0, count=100, backend=["cpu"])
    wrong = []
    for seed in range(options.seed, options.seed + options.count):
        for backend in options.backend:
            found = drawn(seed, backend).problems()
            wrong += [f"seed {seed}, {backend}, {text}" for text in found]
    return reported(f"{options.count} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
