"""A program written in place: its equations in the lines of another one."""

# Made from chapters/13_python_rest.md by `make chapter`;
# edit the chapter, not this file.

def hand_over(writer, closed, values, names):
    """Give names to results of a program in place, and forget those it gave them.

    Args:
      writer: the `PythonWriter` that has written the program.
      closed: the `ClosedJaxpr`.
      values: expressions of its results, or of the first of them.
      names: the new name of each; `_` for one that is not read.
    """
    results = _made(closed).intersection(closed.outvars)
    own = {writer.expressions[var] for var in results if var.aval.shape}
    writer.assign(names, values)
    writer.forget(value for value in values if value in own.difference(names))


def write_into(writer, closed, operands, names):
    """Write a program in place, and leave its results under given names.

    Args:
      writer: the `PythonWriter` of the function.
      closed: a `ClosedJaxpr`.
      operands: expressions of its inputs.
      names: of its results; `_` for one that is not read.
    """
    made, pairs = _made(closed), zip(closed.outvars, names)
    promised = {var: name for var, name in pairs if var in made and name != "_"}
    writer.promised.update(promised)
    hand_over(writer, closed, writer.inline(closed, operands), names)


def _made(closed):
    """Return the variables that the equations of a program define."""
    return {var for eqn in closed.eqns for var in eqn.outvars}
