"""Random programs whose results are exact: all ways of running agree bit by bit.

    python -m tests.exact_programs --seed 0 --count 1000 [--kind chains] [--jax]

Numbers are whole, and a bound of each value keeps all sums of them exact in its dtype
(`tests.exact_values`). So the order of additions cannot be seen: what `jit` returns is
compared with what each line returns by itself, bit by bit; in small programs fused
kernels with unfused ones as well. `--jax` compares with real JAX where it is installed.
"""

import dataclasses
import sys
import time
from functools import partial

import numpy as np

import minijax
from tests import fusion_cases
from tests.commands import options_of, reported
from tests.edge_programs import Case
from tests.exact_drawing import KINDS, drawing
from tests.random_programs import Package
from tests.red_zones import LAYOUTS


@dataclasses.dataclass(frozen=True)
class ExactCase(Case):
    """A program, as in `Case`, that is compared bit by bit.

    Attributes:
      ways: of `WAYS`.
      results: names of arguments and lines that the program returns.
    """

    results: tuple = ()

    alone = ("jit",)

    def run(self, program, way, zones):
        """Yield what goes wrong in one way."""
        names = self.returned(program.lines)
        function = program.package.function(program.lines, names)
        wanted = [program.values[name] for name in names]
        yield from WAYS[way](self, program, function, wanted)

    def returned(self, lines):
        """The results that are left; all lines if none is."""
        names = [name for name, _ in lines]
        return [n for n in self.results if n in {*self.inputs, *names}] or names

    def jitted(self, program, function, wanted):
        """Compile it for the backend; call it twice."""
        run = minijax.jit(function, backend=self.backend)
        for _ in range(2):
            found = program.attempt(run, program.inputs)
            yield from self.differences("jit", program, found, wanted)

    def fused(self, program, function, wanted):
        """Fuse its kernels, and interpret them and the ones that they are made of."""
        closed = program.attempt(minijax.make_jaxpr(function), program.inputs)
        if isinstance(closed, Exception):
            yield repr(closed)
            return
        closed = fusion_cases.simplify(closed)
        operands = [program.inputs[name] for name in sorted(program.inputs)]
        found = program.attempt(
            partial(fusion_cases.compare, exact=True), closed, operands
        )
        yield from [repr(found)] if isinstance(found, Exception) else found[0]

    def beside_jax(self, program, function, wanted):
        """Run it by real JAX, compiled; where that differs, line by line."""
        package = Package("jax")
        with package.jax.enable_x64(self.wide):
            names = self.returned(program.lines)
            theirs = package.function(program.lines, names)
            found = package.attempt(package.jax.jit(theirs), self.inputs)
            problems = [*self.differences("JAX", program, found, wanted)]
            if problems and not isinstance(found, Exception):
                with package.jax.disable_jit():
                    arrays = {n: package.names["jnp"].asarray(x)
                              for n, x in self.inputs.items()}  # fmt: skip
                    found = package.attempt(theirs, arrays)
                problems = [*self.differences("JAX", program, found, wanted)]
        yield from problems

    def differences(self, who, program, found, wanted):
        """Yield texts of results that differ."""
        if isinstance(found, Exception):
            yield f"{who}: {type(found).__name__}: {found}"
            return
        for name, ours, other in zip(
            self.returned(program.lines), found, wanted, strict=True
        ):
            if not fusion_cases.equal(ours, other):
                yield f"{name}, {who}: {said(ours, other)}"

    def smaller(self):
        """Yield simpler cases."""
        change = partial(dataclasses.replace, self)
        if len(self.results) > 1:
            yield from [change(results=(name,)) for name in self.results]
        yield from super().smaller()
        if self.apart:
            yield change(apart=False)


def said(ours, other):
    """Say where two arrays differ."""
    ours, other = np.asarray(ours), np.asarray(other)
    types = [f"{x.dtype.name}{list(x.shape)}" for x in (ours, other)]
    if types[0] != types[1]:
        return f"{types[0]} instead of {types[1]}"
    places = np.argwhere((ours != other) & ((ours == ours) | (other == other)))
    place = tuple(map(int, places[0]))
    return (
        f"{len(places)} of {ours.size} numbers of {types[0]} differ, "
        f"at {place} {ours[place]} instead of {other[place]}"
    )


WAYS = {
    "jit": ExactCase.jitted,
    "fused": ExactCase.fused,
    "jax": ExactCase.beside_jax,
}


def kind_of(seed):
    """The kind of a seed's program: most are small or wide."""
    return ("small", "wide", "small", "wide", "chains", "small", "images")[seed % 7]


def drawn(seed, kind="", ways=(), backend="cpu"):
    """Return the `ExactCase` of a seed, and what was refused while it was drawn."""
    kind, wide = kind or kind_of(seed), seed % 4 == 3
    with minijax.enable_x64(wide):
        found = drawing(seed, kind, wide)
    odd = found.rng.random() < 0.3
    layouts = {n: str(found.rng.choice([*LAYOUTS])) if odd else "plain"
               for n in found.inputs}  # fmt: skip
    apart = kind != "chains" and bool(found.rng.random() < 0.3)
    ways = ways or (("jit", "fused") if kind == "small" else ("jit",))
    case = ExactCase(
        found.inputs, layouts, found.lines, wide, ways, apart, backend, found.results
    )
    return case, found.refused


def problems(seed, kind="", ways=(), backend="cpu"):
    """Return what goes wrong with the program of a seed, texts, and its case."""
    case, refused = drawn(seed, kind, ways, backend)
    return [*case.problems(), *refused], case


def main():
    """Run from the command line."""
    options = options_of(__doc__, seed=0, count=100, kind="", jax=False, backend="cpu")
    if options.kind and options.kind not in KINDS:
        sys.exit(f"--kind is one of {', '.join(KINDS)}")
    wrong, start = [], time.perf_counter()
    for seed in range(options.seed, options.seed + options.count):
        ways = ("jit", "jax") if options.jax else ()
        found, case = problems(seed, options.kind, ways, options.backend)
        if found:
            print(f"seed {seed}:", *found, case.script(), sep="\n", flush=True)
        wrong += [f"seed {seed}: {text[:300]}" for text in found]
    rate = options.count / (time.perf_counter() - start)
    return reported(f"{options.count} programs, {rate:.1f} a second", wrong)


if __name__ == "__main__":
    sys.exit(main())
