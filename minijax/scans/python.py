"""A scan in emitted Python: a for loop, and an array for each of the ys.

Reference: ``jax.lax.scan``.
"""

# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter

from minijax.emitted.emission import python_rules
from minijax.emitted.in_place import hand_over
from minijax.scans.primitive import scan_p
from minijax.scans.steps import groups


def write_scan(writer, eqn, operands, results):
    """Write a scan as a loop.

    Args:
      writer: the `PythonWriter` of the function.
      eqn: the equation.
      operands: expressions of its operands.
      results: the names of its results.
    """
    program, num_carry = eqn.params["jaxpr"], eqn.params["num_carry"]
    consts, carry, xs = groups(operands, eqn.params["num_consts"], num_carry)
    state, ys = groups(results, num_carry)
    state = [writer.name("carry") if name == "_" else name for name in state]
    writer.assign(state, carry)
    stacks, twins = _write_stacks(writer, eqn, ys)
    step = writer.name("step")
    with writer.block(f"for {step} in {_range_of_rows(**eqn.params)}:"):
        rows = _write_rows(writer, program, xs, step)
        carry, rows = groups(writer.inline(program, consts + state + rows), num_carry)
        for y, place in stacks.items():
            writer.line(f"{y}[{step}] = {rows[place]}")
        hand_over(writer, program, carry, state)
    writer.assign(*twins)


python_rules[scan_p] = write_scan


def _range_of_rows(length, reverse, **params):
    return f"range({length - 1}, -1, -1)" if reverse else f"range({length})"


def _write_stacks(writer, eqn, ys):
    """Write empty arrays for the ys.

    Returns:
      A dictionary from their names to the places of the rows that go there; and two
      lists of names, of ys that would be filled with the same rows, and of the others.
    """
    num_carry, stacks, first = eqn.params["num_carry"], {}, {}
    rows = eqn.params["jaxpr"].outvars[num_carry:]
    for place, (y, row, var) in enumerate(zip(ys, rows, eqn.outvars[num_carry:])):
        if y != "_" and first.setdefault(row, y) == y:
            dtype = writer.dtype(var.aval.dtype)
            writer.line(f"{y} = np.empty({var.aval.shape}, {dtype})")
            stacks[y] = place
    twins = [(y, first[row]) for y, row in zip(ys, rows) if y not in ("_", *stacks)]
    return stacks, [*zip(*twins)] or [(), ()]


def _write_rows(writer, program, xs, step):
    """Write what takes the row of a step, and return expressions of the rows."""
    uses = Counter([*program.outvars, *(x for eqn in program.eqns for x in eqn.invars)])
    rows = []
    for x, var in zip(xs, program.invars[len(program.invars) - len(xs) :]):
        rows.append(f"{x}[{step}]")
        if uses[var] > 1:
            row = writer.name("row")
            writer.line(f"{row} = {rows.pop()}")
            rows.append(row)
    return rows
