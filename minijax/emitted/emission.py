# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Programs as Python source: one function for a program, about a line per equation.

A name in it stands for a NumPy array of exactly the dtype and shape that the jaxpr
says, or for a NumPy scalar where there are no axes.
"""

from minijax.core import RuleTable
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.scopes import Scope
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


class EquationWriter(Scope):
    """Writes equations, each by the rule of its primitive.

    Args:
      emission: the `Emission` that the function belongs to.

    Attributes:
      expressions: what stands for each variable of a jaxpr.
    """

    def __init__(self, emission):
        super().__init__()
        self.emission, self.expressions = emission, {}

    def read(self, atom):
        """Return an expression for a variable, or for a literal with its dtype."""
        literal = isinstance(atom, Literal)
        return self.scalar(atom) if literal else self.expressions[atom]

    def define(self, var, name=None):
        """Return the name of a variable that the next lines define."""
        letter = self.emission.letters[var]
        self.expressions[var] = name or (letter if letter == "_" else self.name(letter))
        return self.expressions[var]

    def equation(self, eqn, targets):
        """Write an equation; `targets` has names for results that have one already."""
        self.on_behalf_of(eqn.source)
        operands = [self.read(atom) for atom in eqn.invars]
        results = [self.define(var, targets.get(var)) for var in eqn.outvars]
        rule = python_rules.get(eqn.primitive, write_evaluation)
        rule(self, eqn, operands, results)


class PythonWriter(EquationWriter):
    """Writes programs into the body of a function."""

    def inline(self, closed, operands, results=None):
        """Write the equations of a program in place.

        Args:
          closed: a `ClosedJaxpr`.
          operands: expressions of its inputs.
          results: names for its results; by default, they get names of their own.

        Returns:
          The list of expressions of its results.
        """
        closed = without_waste(closed)
        for var, const in zip(closed.constvars, closed.consts):
            letter = self.emission.letters[var]
            self.expressions[var] = self.array(const, letter, var.aval)
        self.expressions.update(zip(closed.invars, operands))
        self._equations(closed, results or ())
        values = [self.read(atom) for atom in closed.outvars]
        if results is not None:
            self.assign(results, values)
        return values if results is None else results

    def _equations(self, closed, results):
        made = {var for eqn in closed.eqns for var in eqn.outvars}
        pairs = zip(closed.outvars, results)
        targets = {var: name for var, name in pairs if var in made and name != "_"}
        for eqn, dying in zip(closed.eqns, last_uses(closed.jaxpr)):
            self.equation(eqn, targets)
            self.forget(self.expressions[var] for var in dying)
        ends = [var for var in closed.outvars if var in made and var.aval.shape]
        self.loose.update(self.expressions[var] for var in ends)


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
        self.functions, self.evaluations = {}, {}
        self.texts, self.sources = [], {}

    def function(self, closed, hint, decorators=()):
        """Return the function of a program; the same program has the same function."""
        key = closed.jaxpr, *map(id, closed.consts)
        if key not in self.functions:
            name = self.names.fresh(hint)
            self.functions[key] = self._function(closed, name, decorators)
        return self.functions[key]

    def _function(self, closed, name, decorators):
        writer = PythonWriter(self)
        writer.name(name)
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
