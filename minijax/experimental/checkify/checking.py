"""Checkify: an interpretation of jaxprs that returns failures beside results.

Reference: ``jax.experimental.checkify.checkify``; Claessen's error values are those of
an exception monad (Moggi, *Notions of computation and monads*, 1991).
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

from minijax.core import RuleTable
from minijax.experimental.checkify.checks import Error, failure_of
from minijax.experimental.checkify.error_values import (
    DivisionByZeroError,
    FailedCheckError,
    NaNError,
    OOBError,
)
from minijax.forgetting.programs import stage
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import ClosedJaxpr, Literal
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.pytrees.treedefs import tree_flatten

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Checks:
    """What has failed until now, while a program is interpreted.

    Args:
      wanted: a set of classes of exceptions.

    Attributes:
      failures, causes: as those of `Error`.
      line: of the equation at hand.
    """

    def __init__(self, wanted):
        self.wanted, self.failures, self.causes, self.line = wanted, {}, {}, None

    def note(self, failed, kind, details=(), arrays=()):
        """Record the outcome of a new check."""
        self.take(failure_of(failed, kind, self.line, details, arrays))

    def take(self, error):
        """Record the failures of an error value, behind those before."""
        self.causes |= error.causes
        for name, failure in error.failures.items():
            before = self.failures.get(name)
            self.failures[name] = before.followed_by(failure) if before else failure


def plainly(checks, eqn, *operands):
    """Bind an equation as it is, if no program inside of it has to be looked at."""
    for inner in jaxprs_in_params(eqn.params):
        if checkified(_closed(inner), checks.wanted).tree.num_leaves:
            raise NotImplementedError(
                f"checkify does not look inside of '{eqn.primitive}', and there is "
                "something to check. Checkify the function that it calls."
            )
    return eqn.primitive.bind(*operands, **eqn.params)


def _closed(jaxpr):
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])


# Rules ``rule(checks, eqn, *operands)`` return the results of an equation, and record
# what has failed.
check_rules: RuleTable = RuleTable("check", default=plainly)


def run_checked(checks, closed, operands):
    """Run a program, and record what fails."""
    values = dict(zip([*closed.constvars, *closed.invars], [*closed.consts, *operands]))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else values[atom]

    for eqn in closed.eqns:
        checks.line = eqn.source
        results = check_rules[eqn.primitive](checks, eqn, *map(read, eqn.invars))
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in closed.outvars]


class Checkified(NamedTuple):
    """A program that returns its failures, and then its results.

    Attributes:
      program: the `ClosedJaxpr`.
      tree: the structure of its failures.
      causes: what their numbers mean.
    """

    program: ClosedJaxpr
    tree: Any
    causes: dict

    @property
    def kinds(self):
        """The types of its failures, in the structure of `tree`."""
        return self.tree.unflatten(self.program.out_avals[: self.tree.num_leaves])

    def split(self, outs):
        """Return its failures as an error value, and its results."""
        count = self.tree.num_leaves
        return Error(self.tree.unflatten(outs[:count]), self.causes), outs[count:]


@remembered
def checkified(closed, wanted):
    """Return the `Checkified` of a program."""
    checks, trees = Checks(wanted), []

    def program(*operands):
        outs = run_checked(checks, closed, operands)
        leaves, tree = tree_flatten(checks.failures)
        trees.append(tree)
        return leaves + outs

    staged = stage(program, closed.in_avals)
    return Checkified(staged, trees[0], checks.causes)
