# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The protocol of steps: what every type of step has, in its class and in a table."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from minijax.jitting.costs import BYTES, nbytes

IN_THE_CLASS = {
    "reads": "a list of the buffers that it reads",
    "writes": "a list of the buffers that it writes to",
    "programs": "the programs within it, a tuple; with some, also `with_programs`",
    "__str__": "its line in the text of a program",
}


class StepKind(NamedTuple):
    """What programs know of a type of step besides what its class says.

    Attributes:
      run: a function of a program and a step that returns a function of the memory,
        which does the step.
      cost: a function of a step that returns its costs, a `Counter`.
      write: a function of a `StepsText` and a step that writes it there; None if
        Python does the step for machine code.
    """

    run: Callable
    cost: Callable
    write: Callable | None = None


class StepKinds(dict):
    """From types of steps to their `StepKind`; a type with a hole is refused."""

    def __setitem__(self, kind, rules):
        holes = [*_holes_in_class(kind), *_holes_in_rules(rules)]
        if holes:
            raise TypeError(
                f"{kind.__name__} is no step of a program yet. It lacks:\n"
                + "\n".join(f"  {hole}" for hole in holes)
            )
        super().__setitem__(kind, rules)

    def __missing__(self, kind):
        name = kind.__name__
        raise TypeError(
            f"a program has a step of type {name}, which is not registered: write "
            f"`step_kinds[{name}] = StepKind(run, cost)`"
        )


def _holes_in_class(kind):
    for name, meaning in IN_THE_CLASS.items():
        if getattr(kind, name, object.__str__) is object.__str__:
            yield f"{kind.__name__}.{name}: {meaning}"


def _holes_in_rules(rules):
    if not callable(rules.run):
        yield "StepKind.run: a function that returns how the step is done"
    if not callable(rules.cost):
        yield "StepKind.cost: a function that returns a Counter"


step_kinds = StepKinds()


def cost_of_moving(step):
    """Return the costs of a step that moves numbers, and computes none."""
    return Counter({BYTES: sum(map(nbytes, [*step.reads, *step.writes]))})


def cost_of_program(program):
    """Return the costs of all steps of a program, a `Counter`."""
    counts = [step_kinds[type(step)].cost(step) for step in program.steps]
    return sum(counts, Counter())
