"""Random programs with own rules, forgetting and random keys, in several ways.

`tests.rules_writer` writes them. Each is run as it stands, under jvp, vjp and vmap, and
under a pair of transformations, one within the other; and each of these eagerly, as
emitted Python and as machine code, beside real JAX, or, ``--alone``, beside its jaxpr,
whose equations are bound one by one.

    python -m tests.random_calls --seed 7 --count 100 [--alone]
"""

import sys
from collections import Counter
from importlib import import_module

import numpy as np

from tests.commands import options_of
from tests.known_differences import (
    REFUSED_WHEN_COMPILED,
    beyond_linearize,
    strong_gradient,
)
from tests.random_control import (
    TRANSFORMATIONS,
    ControlComparison,
    alike_but_for_weakness,
    attempt,
    backend,
    direction,
    eager,
    jvp,
    mapped,
    moving,
    report,
    weakness_differs,
)
from tests.random_programs import dtype_kind, pattern
from tests.rules_writer import HALVES, RulesProgram

WAYS = [eager, backend("python"), backend("cpu")]
# A half has 11 or 8 digits in base two; a derivative that is lost is half as large.
LOOSE_HALVES = {"float16": 300.0, "bfloat16": 1500.0}


def jit(jax, f, values):
    return jax.jit(f)(values)


def checkpoint(jax, f, values):
    return jax.checkpoint(f)(values)


def grad(jax, f, values):
    def loss(reals):
        outs = [y for y in f({**values, **reals}) if dtype_kind(y) in "fc"]
        return sum((jax.numpy.real(y) * pattern(y).real).sum() for y in outs)

    reals = {name: x for name, x in values.items() if dtype_kind(x) == "f"}
    return list(jax.grad(loss)(reals).values())


def linearize(jax, f, values):
    g, primals = moving(f, values)
    outs, push = jax.linearize(g, *primals)
    return outs, push(*[direction(jax, x) for x in primals])


AROUND = {"jit": jit, "vmap": mapped, "grad": grad, "jvp": jvp}
AROUND |= {"checkpoint": checkpoint, "linearize": linearize}


def one_within(outer, inner):
    """Return the transformation of these names, one within the other."""

    def both(jax, f, values):
        def within(values):
            return jax.tree_util.tree_leaves(AROUND[inner](jax, f, values))

        return AROUND[outer](jax, within, values)

    both.__name__ = f"{outer} of {inner}"
    return both


def nudged(x, ends):
    """Return an array of halves, each moved by its last digit; others as they are."""
    if getattr(x.dtype, "name", "") not in HALVES:
        return x
    return (np.asarray(x, "float64") * (1 + ends)).astype(x.dtype)


class RulesComparison(ControlComparison):
    """One random program, in all ways; see `ControlComparison`.

    Attributes:
      forgotten: how many results JAX has only where its loops are loops of Python. In
        second derivatives of a loop JAX 0.10.2 leaves out the rules within it.
      trembling: how many results of halves differ where JAX's differ as well when an
        input moves by its last digit, as at the threshold of a `where`.
      unused: how many results JAX refuses to compile for a derivative that we refuse
        where it is computed, and nothing needs it, or the branch is not taken; and
        second derivatives that JAX cannot linearize, of rules with `optimize_remat`.
    """

    writer, ways, forgotten, trembling, unused = RulesProgram, WAYS, 0, 0, 0

    def all(self):
        return [*TRANSFORMATIONS, one_within(*self.program.pair)]

    def compare(self, alone):
        everything = f"{self.program.source}{self.program.inputs}"
        self.halves = [name for name in HALVES if name in everything]
        self.loose = max([LOOSE_HALVES[n] for n in self.halves], default=self.loose)
        super().compare(alone)

    def rounded(self, x):
        if not self.halves or dtype_kind(x) not in "fc":
            return super().rounded(x)
        return np.asarray(x).astype({"f": "float32", "c": "complex64"}[dtype_kind(x)])

    def judge(self, transformation, way, ours, wanted, at_once):
        if "No constant handler" in str(wanted):
            return  # JAX has lost a tracer that a rule closes over
        late = "'custom_lin' not implemented" in str(wanted)
        wanted = TypeError(str(wanted)) if late else wanted
        alone = REFUSED_WHEN_COMPILED in str(wanted) and not isinstance(ours, Exception)
        if alone or beyond_linearize(self.program.source, wanted):
            self.unused += 1
            return
        if self.differs_by_known_weakness(transformation, ours, wanted):
            wanted = ours
        before = len(self.found)
        super().judge(transformation, way, ours, wanted, at_once)
        if len(self.found) > before and at_once and self.forgets(ours, at_once):
            self.found.pop()
            self.forgotten += 1
        elif len(self.found) > before and at_once and self.trembles(at_once, wanted):
            self.found.pop()
            self.trembling += 1

    def differs_by_known_weakness(self, transformation, ours, wanted):
        """Whether only results that `strong_gradient` excuses differ, in weakness."""
        if attempt(alike_but_for_weakness, ours, wanted) is not True:
            return False
        pairs = weakness_differs(ours, wanted)
        known = strong_gradient(self.program, transformation.__name__, pairs)
        return known and not attempt(self.difference, ours, wanted, False)

    def trembles(self, at_once, wanted):
        """Whether JAX's own results move as far if an input does by its last digit."""
        transformation, (jax, f, values) = at_once.func, at_once.args
        for digit in (2**-9, -(2**-9)) if self.halves else ():
            close = {name: nudged(x, digit) for name, x in values.items()}
            found = attempt(transformation, jax, f, close)
            if attempt(self.difference, found, wanted, False):
                return True
        return False

    def forgets(self, ours, at_once):
        """Whether JAX agrees if its loops are loops of Python."""
        loops = any(word in self.program.source for word in ("scan(", "fori_loop("))
        if not loops or "custom_jvp" not in self.program.source:
            return False
        with import_module("jax").disable_jit():
            return not attempt(self.difference, ours, attempt(at_once), False)


def main(arguments=None):
    """Run from the command line."""
    options = options_of(__doc__, arguments, seed=0, count=100, length=5, alone=False)
    totals, kinds = Counter(), Counter()
    for seed in range(options.seed, options.seed + options.count):
        found = RulesComparison(seed, options.alone, options.length)
        kinds.update(found.program.kinds)
        totals["results"] += found.checked
        totals["refusals"] += found.refused
        totals["rules that JAX forgets"] += found.forgotten
        totals["halves at a threshold"] += found.trembling
        totals["refused by JAX alone"] += found.unused
        if found.found:
            totals["programs that disagree"] += 1
            print(report(seed, found), end="\n\n", flush=True)
        if seed % 50 == 49:
            done = f"… up to seed {seed}: {dict(totals)}"
            print(done, file=sys.stderr, flush=True)
            if not options.alone:
                import_module("jax").clear_caches()
    print(", ".join(f"{kind}: {number}" for kind, number in kinds.most_common()))
    print(f"{options.count} programs, {dict(totals)}")
    return bool(totals["programs that disagree"])


if __name__ == "__main__":
    sys.exit(main())
