"""Code generation: Python source for a program, about a line for each equation.

A name in it stands for a NumPy array of exactly the dtype and shape that the jaxpr
says, or for a NumPy scalar where there are no axes.
"""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.

from minijax.core import RuleTable
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.scopes import JaxprScope
from minijax.emitted.source_text import Names, letters_of
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.compilation import without_waste


def last_uses(jaxpr):
    """Return, for each equation, the variables with axes that are not read after it.

    They are results of equations of this jaxpr: its inputs belong to the caller.
    """
    later, dying = {*jaxpr.outvars, *jaxpr.invars, *jaxpr.constvars}, []
    for eqn in reversed(jaxpr.eqns):
        here = [atom for atom in eqn.invars if not isinstance(atom, Literal)]
        here = dict.fromkeys([*eqn.outvars, *here])
        dying.append([var for var in here if var not in later and var.aval.shape])
        later.update(here)
    return dying[::-1]


python_rules: RuleTable = RuleTable("python")


def write_equation(writer, eqn):
    """Write the lines of an equation, by the rule of its primitive."""
    writer.on_behalf_of(eqn.source)
    operands = [writer.read(atom) for atom in eqn.invars]
    results = [writer.define(var) for var in eqn.outvars]
    rule = python_rules.get(eqn.primitive, write_evaluation)
    rule(writer, eqn, operands, results)


class PythonWriter(JaxprScope):
    """Writes programs into the body of a function of an `Emission`."""

    def __init__(self, emission):
        super().__init__(emission.letters)
        self.emission = emission

    def inline(self, closed, operands):
        """Write the equations of a program in place.

        Args:
          closed: a `ClosedJaxpr`.
          operands: expressions of its inputs.

        Returns:
          The list of expressions of its results.
        """
        closed = without_waste(closed)
        self.set_inputs(closed, operands)
        for eqn, dying in zip(closed.eqns, last_uses(closed.jaxpr)):
            write_equation(self, eqn)
            self.forget(self.expressions[var] for var in dying)
        return [self.read(atom) for atom in closed.outvars]


class Emission:
    """The functions of one program, and of the programs in it.

    Args:
      jaxpr: the outermost `Jaxpr`.

    Attributes:
      texts: the source of each function, inner ones first.
      sources: the places in the user's program, by file name and line.
    """

    def __init__(self, jaxpr):
        self.letters, self.names = letters_of(jaxpr), Names()
        self.functions, self.texts, self.sources = {}, [], {}

    def function(self, closed, hint, decorators=()):
        """Return the function of a program; the same program has the same function."""
        key = closed.jaxpr, *map(id, closed.consts)
        if key not in self.functions:
            name = self.names.fresh(hint)
            self.functions[key] = self._function(closed, name, decorators)
        return self.functions[key]

    def _function(self, closed, name, decorators):
        writer = PythonWriter(self)
        writer.name(name)  # no variable may have it
        inputs = [writer.name(self.letters[var]) for var in closed.invars]
        writer.end(writer.inline(closed, inputs))
        text, function, sources = writer.as_function(name, inputs, decorators)
        self.texts.append(text)
        self.sources.update(sources)
        return function


def emit(closed, name="program"):
    """Translate a program into Python.

    Args:
      closed: a `ClosedJaxpr`.
      name: what its function is called.

    Returns:
      The text; the function, from buffers to a list of buffers; and the places in the
      user's program, by file name and line.
    """
    emission = Emission(closed.jaxpr)
    function = emission.function(closed, name, ['@np.errstate(all="ignore")'])
    return "\n\n".join(emission.texts), function, emission.sources
