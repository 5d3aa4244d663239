# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Programs as Python source: one function for a program, about a line per equation.

A name in it stands for a NumPy array of exactly the dtype and shape that the jaxpr
says, or for a NumPy scalar where there are no axes.
"""

import linecache
import re
import weakref
from itertools import count

import numpy as np

from minijax.arrays.array import asbuffer
from minijax.arrays.dtypes import short_name
from minijax.core import RuleTable
from minijax.emitted.evaluations import write_evaluation
from minijax.emitted.source_text import Lines, Names, comment, last_uses, scalar_of
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.printing import Writing, shared_jaxprs, write_jaxpr
from minijax.jitting.programs import dce_jaxpr, with_consts


class Scope(Lines):
    """The lines of a function, its names, and what it reads from outside.

    Attributes:
      constants: pairs of an object and its description, by the name that it has here.
    """

    def __init__(self):
        super().__init__()
        self.names, self.constants, self._kept = Names(), {}, {}

    def name(self, hint):
        """Return a new name."""
        return self.names.fresh(hint)

    def constant(self, value, hint, description=None, key=None):
        """Return the name of an object; the same object has the same name.

        Args:
          value: any object of Python.
          hint: its name, if that is free.
          description: what the comment in front of the function says about it.
          key: what makes it the same; by default, its identity.
        """
        key = id(value) if key is None else key
        if key not in self._kept:
            self._kept[key] = self.name(hint)
            description = description or f"a {type(value).__name__}"
            self.constants[self._kept[key]] = value, description
        return self._kept[key]

    def scalar(self, literal):
        """Return the name of a literal's value with its dtype."""
        value = scalar_of(literal)
        dtype = short_name(value.dtype)
        hint = f"{dtype}_{value!s}".replace("-", "m")
        key = dtype, value.tobytes()
        return self.constant(value, hint, f"{value!s} of type {dtype}", key)

    def dtype(self, dtype):
        """Return an expression for a dtype."""
        if dtype.isbuiltin == 1:
            return f"np.{dtype.name}"
        return self.constant(dtype, dtype.name, "a dtype")

    def seen(self):
        """Return those `constants` which the lines mention."""
        words = set(re.findall(r"\w+", "\n".join(self.lines)))
        return {name: pair for name, pair in self.constants.items() if name in words}


python_rules = RuleTable("python")


class EquationWriter(Scope):
    """Writes equations, each by the rule of its primitive.

    Args:
      emission: the `Emission` that the function belongs to.

    Attributes:
      expressions: what stands for each variable of a jaxpr.
    """

    def __init__(self, emission):
        super().__init__()
        self.emission, self.expressions, self._targets = emission, {}, {}

    def read(self, atom):
        """Return an expression for a variable, or for a literal with its dtype."""
        literal = isinstance(atom, Literal)
        return self.scalar(atom) if literal else self.expressions[atom]

    def define(self, var):
        """Return the name of a variable that the next lines define."""
        name = self._targets.get(var) or self.emission.letters[var]
        if var not in self._targets and name != "_":
            name = self.name(name)
        self.expressions[var] = name
        return name

    def equation(self, eqn):
        """Write an equation."""
        self.on_behalf_of(eqn.source)
        operands = [self.read(atom) for atom in eqn.invars]
        results = [self.define(var) for var in eqn.outvars]
        rule = python_rules.get(eqn.primitive, write_evaluation)
        rule(self, eqn, operands, results)

    def forget(self, names):
        """Write that some names are not needed any more."""
        names = [name for name in dict.fromkeys(names) if name != "_"]
        if names:
            self.line(f"del {', '.join(names)}")


def pruned(closed):
    """Return a program without the equations that nobody needs."""
    jaxpr = dce_jaxpr(closed.jaxpr, (True,) * len(closed.outvars))
    return with_consts(jaxpr, closed)


class Writer(EquationWriter):
    """Writes programs into the body of a function."""

    def __init__(self, emission):
        super().__init__(emission)
        self._loose = set()

    def inline(self, closed, operands, results=None):
        """Write the equations of a program in place.

        Args:
          closed: a `ClosedJaxpr`.
          operands: expressions of its inputs.
          results: names for its results; by default, they get names of their own.

        Returns:
          The list of expressions of its results.
        """
        closed = pruned(closed)
        self._read_inputs(closed, operands)
        made = {var for eqn in closed.eqns for var in eqn.outvars}
        pairs = zip(closed.outvars, results or ())
        named = {var: name for var, name in pairs if var in made and name != "_"}
        outer, self._targets = self._targets, self._targets | named
        self._equations(closed.jaxpr)
        self._targets = outer
        made = [var for var in closed.outvars if var in made and var.aval.shape]
        self._loose.update(map(self.expressions.get, made))
        values = [self.read(atom) for atom in closed.outvars]
        if results is not None:
            self.assign(results, values)
        return values if results is None else results

    def assign(self, targets, values):
        """Give names to values, all at once.

        Names that are left over from `inline` are forgotten.
        """
        pairs = [(t, v) for t, v in zip(targets, values) if t not in (v, "_")]
        if pairs:
            left, right = map(", ".join, zip(*pairs))
            self.line(f"{left} = {right}")
        self.forget([v for v in values if v in self._loose and v not in targets])
        self._loose -= {*values}

    def end(self, values):
        """Write the end of the function, at which everything is forgotten."""
        while self.lines and self.lines[-1].startswith("    del "):
            self.lines.pop()
        self.line(f"return [{', '.join(values)}]")

    def function(self, closed, hint):
        """Return the name of the function of another program.

        It takes buffers and returns a list of buffers.
        """
        function = self.emission.function(closed, hint)
        return self.constant(function, function.__name__, "a function above")

    def _read_inputs(self, closed, operands):
        for var, const in zip(closed.constvars, closed.consts):
            buffer = asbuffer(const)
            value = buffer if buffer.ndim else buffer[()]
            letter, kind = self.emission.letters[var], var.aval.str_short()
            name = self.constant(value, letter, f"a constant, {kind}", id(const))
            self.expressions[var] = name
        self.expressions.update(zip(closed.invars, operands))

    def _equations(self, jaxpr):
        for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr)):
            self.equation(eqn)
            self.forget(self.expressions[var] for var in dying)


def letters_of(jaxpr):
    """Return the names that variables have where a jaxpr is printed."""
    shared = shared_jaxprs(jaxpr)
    writing = Writing(jaxpr, shared)
    for each in [*shared, jaxpr]:
        write_jaxpr(each, writing)
    return writing.names


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
        writer = Writer(self)
        writer.name(name)
        inputs = [writer.name(self.letters[var]) for var in closed.invars]
        writer.end(writer.inline(closed, inputs))
        seen = writer.seen()
        head = [comment(f"{n}: {said}") for n, (_, said) in seen.items()]
        head += [*decorators, f"def {name}({', '.join(inputs)}):"]
        self.texts.append("\n".join([*head, *writer.lines, ""]))
        namespace = {"np": np} | {n: value for n, (value, _) in seen.items()}
        function, file = build(name, self.texts[-1], namespace)
        first = len(head) + 1
        self.sources[file] = {first + i: line for i, line in writer.sources.items()}
        return function


_numbers = count(1)


def build(name, text, namespace):
    """Return the function that a text defines, and the name of the file it seems from.

    Args:
      name: of the function.
      text: its source.
      namespace: dictionary of its globals; it does not keep the function.
    """
    file = f"<minijax {name} {next(_numbers)}>"
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    function = namespace.pop(name)
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function, file


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
