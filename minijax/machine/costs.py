# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""What the steps of a program cost: operations, and bytes that they read and write."""

from collections import Counter
from functools import reduce
from operator import or_

from minijax.jitting.costs import BYTES, FLOPS, cost_of, nbytes
from minijax.kernels.kernel import operations, traffic
from minijax.kernels.program_steps import Evaluate, Launch
from minijax.machine.nested import Branch, Repeat, While
from minijax.matmul.lowering import Product


def cost_of_schedule(schedule):
    """Return the costs of all steps, a `Counter`."""
    counts = [step_costs.get(type(step), moved)(step) for step in schedule.steps]
    return sum(counts, Counter())


def moved(step):
    """Return the costs of a step that moves numbers, and computes none."""
    return Counter({BYTES: sum(map(nbytes, [*step.reads, *step.writes]))})


def cost_of_kernel(kernel):
    """Return the costs of a kernel."""
    return Counter(operations(kernel)) + Counter({BYTES: sum(traffic(kernel))})


def cost_of_product(step):
    """Return the costs of a product of matrices."""
    count, rows, columns, terms = step.sizes
    return Counter({FLOPS: 2 * count * rows * columns * terms}) + moved(step)


def cost_of_repeat(step):
    """Return the costs of a loop: as often those of its body."""
    costs = cost_of_schedule(step.body)
    return Counter({name: step.length * count for name, count in costs.items()})


def cost_of_branch(step):
    """Return, of each cost, that of the branch where it is largest."""
    return reduce(or_, map(cost_of_schedule, step.branches))


# From types of steps to functions of a step that return a `Counter`. A loop that nobody
# has counted is taken as one turn; of other steps, what they read and write is counted.
step_costs = {
    Launch: lambda step: cost_of_kernel(step.kernel),
    Evaluate: lambda step: Counter(cost_of(step.eqn)),
    Product: cost_of_product,
    Repeat: cost_of_repeat,
    Branch: cost_of_branch,
    While: lambda step: cost_of_schedule(step.test) + cost_of_schedule(step.body),
}
