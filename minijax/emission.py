# Made from chapters/11b_python.md by `make chapter`;
# edit the chapter, not this file.
"""Programs as Python source: one function for a program, about a line per equation.

The functions work on buffers: NumPy arrays of exactly the dtypes and shapes that the
jaxpr says, and NumPy scalars where there are no axes.
"""

import linecache
import re
import weakref
from itertools import count

import numpy as np

from minijax.array import asbuffer
from minijax.core import RuleTable
from minijax.dtypes import short_name
from minijax.evaluations import evaluation
from minijax.jaxpr import Literal
from minijax.printing import Writing, shared_jaxprs, write_jaxpr
from minijax.programs import dce_jaxpr, with_consts
from minijax.source_text import Lines, Names, last_uses, scalar_of

python_rules = RuleTable("python")


class Scope(Lines):
    """The names of one function: its own, and those of what it reads from outside.

    Attributes:
      constants: pairs of an object and its description, by the name that it has here.
    """

    def __init__(self, name):
        super().__init__()
        self.names, self.constants, self._kept = Names(), {}, {}
        self.name(name)

    def name(self, hint):
        """Return a new name."""
        return self.names.fresh(hint)

    def constant(self, value, hint, description=None, key=None):
        """Return the name of an object; the same object has the same name.

        Args:
          value: any object of Python.
          hint: the name, if it is free.
          description: what the comment in front of the function says about it.
          key: what makes it the same; by default, its identity.
        """
        key = id(value) if key is None else key
        if key not in self._kept:
            self._kept[key] = self.name(hint)
            description = description or f"a {type(value).__name__}"
            self.constants[self._kept[key]] = value, description
        return self._kept[key]

    def dtype(self, dtype):
        """Return an expression for a dtype."""
        if dtype.isbuiltin == 1:
            return f"np.{dtype.name}"
        return self.constant(dtype, dtype.name, "a dtype")

    def scalar(self, literal):
        """Return an expression for a literal that has its dtype."""
        value = scalar_of(literal)
        dtype = short_name(value.dtype)
        key = dtype, value.tobytes()
        return self.constant(value, f"{dtype}_{value}", f"{value}, {dtype}", key)


class Writer(Scope):
    """Writes programs into the body of a function.

    Args:
      emission: the `Emission` that the function belongs to.
      name: the name of the function.

    Attributes:
      expressions: what stands for each variable of the jaxprs.
    """

    def __init__(self, emission, name):
        super().__init__(name)
        self.emission, self.expressions = emission, {}
        self._targets, self._loose = {}, set()

    def read(self, atom):
        """Return an expression for a variable, or for a literal with its dtype."""
        return self.scalar(atom) if isinstance(atom, Literal) else self.expressions[atom]

    def define(self, var):
        """Return the name of a variable that the next lines define."""
        name = self._targets.get(var) or self.emission.letters[var]
        if var not in self._targets and name != "_":
            name = self.name(name)
        self.expressions[var] = name
        return name

    def forget(self, names):
        """Write that some names are not needed any more."""
        if names:
            self.line(f"del {', '.join(dict.fromkeys(names))}")

    def assign(self, targets, values):
        """Give names to values, all at once; names that only `inline` gave them go."""
        pairs = [(t, v) for t, v in zip(targets, values) if t not in (v, "_")]
        if pairs:
            left, right = map(", ".join, zip(*pairs))
            self.line(f"{left} = {right}")
        self.forget([v for v in values if v in self._loose and v not in targets])
        self._loose -= {*values}

    def function(self, closed, hint):
        """Return the name of the function of another program.

        It takes buffers, and returns a list of buffers.
        """
        function = self.emission.function(closed, hint)
        return self.constant(function, function.__name__, "the function above")

    def equation(self, eqn):
        """Write an equation, by the rule of its primitive."""
        if eqn.source is not None and eqn.source != self.source:
            self.line(f"# {eqn.source}")
        self.source = eqn.source
        operands = [self.read(atom) for atom in eqn.invars]
        results = [self.define(var) for var in eqn.outvars]
        rule = python_rules.get(eqn.primitive, write_evaluation)
        rule(self, eqn, operands, results)

    def inline(self, closed, operands, results=None):
        """Write the equations of a program in place.

        Args:
          closed: a `ClosedJaxpr`.
          operands: expressions of its inputs.
          results: names that its results get; by default, they get names of their own.

        Returns:
          The list of expressions of its results.
        """
        closed = pruned(closed)
        jaxpr = closed.jaxpr
        self._read_inputs(closed, operands)
        outs = {x for eqn in jaxpr.eqns for x in eqn.outvars}.intersection(jaxpr.outvars)
        wanted = zip(jaxpr.outvars, results or ())
        wanted = {var: name for var, name in wanted if var in outs and name != "_"}
        outer, self._targets = self._targets, self._targets | wanted
        for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr)):
            self.equation(eqn)
            self.forget([self.expressions[var] for var in dying])
        self._targets = outer
        values = [self.read(atom) for atom in jaxpr.outvars]
        self._loose.update(self.expressions[var] for var in outs if var.aval.shape)
        if results is None:
            return values
        self.assign(results, values)
        return results

    def _read_inputs(self, closed, operands):
        for var, const in zip(closed.constvars, closed.consts):
            buffer = asbuffer(const)
            value = buffer if buffer.ndim else buffer[()]
            letter = self.emission.letters[var]
            kind = f"a constant, {var.aval.str_short()}"
            self.expressions[var] = self.constant(value, letter, kind, id(const))
        self.expressions.update(zip(closed.invars, operands))


def write_evaluation(writer, eqn, operands, results):
    """Write a call of the primitive's own evaluation: the rule of whoever has none."""
    types = [tuple(atom.aval for atom in atoms) for atoms in (eqn.invars, eqn.outvars)]
    key = eqn.primitive, *types
    made = writer.emission.evaluations
    if key not in made:
        made[key] = evaluation(*key)
    name = writer.constant(made[key], eqn.primitive.name, f"evaluates {eqn.primitive}")
    params = [f"{key}={spell_param(writer, eqn.params[key])}" for key in eqn.params]
    call = f"{name}({', '.join([*operands, *params])})"
    writer.line(f"{', '.join(results)} = {call}" if results else call)


def spell_param(writer, value):
    """Return an expression for a parameter of an equation."""
    if isinstance(value, np.dtype):
        return writer.constant(value, value.name, "a dtype")
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)
    if type(value) is tuple:
        parts = [spell_param(writer, part) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return writer.constant(value, "param")


def pruned(closed):
    """Return a program without the equations that nobody needs."""
    jaxpr = dce_jaxpr(closed.jaxpr, (True,) * len(closed.outvars))
    return with_consts(jaxpr, closed)


def letters_of(jaxpr):
    """Return the names that variables have when a jaxpr is printed."""
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
      texts: the source of each function, the inner ones first.
      sources: by file name, the user's places by line.
    """

    def __init__(self, jaxpr):
        self.letters, self.names = letters_of(jaxpr), Names()
        self.functions, self.evaluations = {}, {}
        self.texts, self.sources = [], {}

    def function(self, closed, hint, decorator=()):
        """Return the function of a program; the same program has the same one."""
        key = closed.jaxpr, *map(id, closed.consts)
        if key not in self.functions:
            name = self.names.fresh(hint)
            self.functions[key] = self._function(closed, name, decorator)
        return self.functions[key]

    def _function(self, closed, name, decorator):
        writer = Writer(self, name)
        inputs = [writer.name(self.letters[var]) for var in closed.invars]
        writer.line(f"return [{', '.join(writer.inline(closed, inputs))}]")
        words = set(re.findall(r"\w+", "\n".join(writer.lines)))
        used = {name: pair for name, pair in writer.constants.items() if name in words}
        head = [f"# {name}: {description}" for name, (_, description) in used.items()]
        head += [*decorator, f"def {name}({', '.join(inputs)}):"]
        self.texts.append("\n".join([*head, *writer.lines]))
        namespace = {name: value for name, (value, _) in used.items()}
        function, file = build(name, self.texts[-1], {"np": np, **namespace})
        lines = {len(head) + i + 1: source for i, source in writer.sources.items()}
        self.sources[file] = lines
        return function


_numbers = count(1)


def build(name, text, namespace):
    """Return the function that a text defines, and the name of the file it seems from.

    The namespace loses the function again, which would hold itself otherwise.
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
      name: what the function is called.

    Returns:
      The text; the function, from buffers to a list of buffers; and, by file name and
      line, the places in the user's program.
    """
    emission = Emission(closed.jaxpr)
    function = emission.function(closed, name, ['@np.errstate(all="ignore")'])
    return "\n\n\n".join(emission.texts) + "\n", function, emission.sources
