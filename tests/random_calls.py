"""Random programs with own rules, forgetting and random keys, in several ways.

`tests.rules_writer` writes them. Each is run as it stands and under jvp, vjp and vmap,
and each of these eagerly, as emitted Python and as machine code, beside real JAX, or,
``--alone``, beside its jaxpr, whose equations are bound one by one.

    python -m tests.random_calls --seed 7 --count 100 [--alone]
"""

import sys
from collections import Counter
from importlib import import_module

from tests.commands import options_of
from tests.random_control import (
    ControlComparison,
    attempt,
    backend,
    eager,
    report,
)
from tests.rules_writer import RulesProgram

WAYS = [eager, backend("python"), backend("cpu")]


class RulesComparison(ControlComparison):
    """One random program, in all ways; see `ControlComparison`.

    Attributes:
      forgotten: how many results JAX has only where its loops are loops of Python. In
        second derivatives of a loop JAX 0.10.2 leaves out the rules within it.
      unused: how many results JAX refuses to compile for a derivative that we refuse
        where it is computed, and nothing needs it, or the branch is not taken.
    """

    writer, ways, forgotten, unused = RulesProgram, WAYS, 0, 0

    def judge(self, transformation, way, ours, wanted, at_once):
        if "No constant handler" in str(wanted):
            return  # JAX has lost a tracer that a rule closes over
        late = "'custom_lin' not implemented" in str(wanted)
        wanted = TypeError(str(wanted)) if late else wanted
        if "forward-mode autodiff" in str(wanted) and not isinstance(ours, Exception):
            self.unused += 1
            return
        before = len(self.found)
        super().judge(transformation, way, ours, wanted, at_once)
        if len(self.found) > before and at_once and self.forgets(ours, at_once):
            self.found.pop()
            self.forgotten += 1

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
        totals["refused by JAX alone"] += found.unused
        if found.found:
            totals["programs that disagree"] += 1
            print(report(seed, found), end="\n\n", flush=True)
        if not options.alone and seed % 50 == 49:
            import_module("jax").clear_caches()
    print(", ".join(f"{kind}: {number}" for kind, number in kinds.most_common()))
    print(f"{options.count} programs, {dict(totals)}")
    return bool(totals["programs that disagree"])


if __name__ == "__main__":
    sys.exit(main())
