"""What an emitted function reads from outside, and how its text becomes a function."""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.

import linecache
import re
import weakref
from itertools import count

import numpy as np

from minijax.arrays.array import asbuffer
from minijax.arrays.dtypes import short_name
from minijax.emitted.source_text import Lines, Names, comment
from minijax.jaxprs.jaxpr import Literal

_numbers = count(1)


def function_from_text(name, text, namespace):
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


def explain(error, sources):
    """Add to an error the line of the user on whose behalf it happened.

    Args:
      error: an exception that was caught.
      sources: the places in the user's program, by file name and line.
    """
    frame = error.__traceback__
    while frame is not None:
        lines = sources.get(frame.tb_frame.f_code.co_filename, {})
        if frame.tb_lineno in lines:
            error.add_note(f"It was asked for in {lines[frame.tb_lineno]}.")
        frame = frame.tb_next


def scalar_of(literal):
    """Return the value of a literal as a NumPy scalar of its dtype."""
    return np.asarray(literal.val).astype(literal.aval.dtype)[()]


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
          value: any Python object.
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

    def array(self, const, hint, aval):
        """Return the name of a constant array, or of a scalar if it has no axes."""
        buffer = asbuffer(const)
        value = buffer if buffer.ndim else buffer[()]
        return self.constant(value, hint, f"a constant, {aval.str_short()}", id(const))

    def dtype(self, dtype):
        """Return an expression for a dtype."""
        if dtype.isbuiltin == 1:
            return f"np.{dtype.name}"
        return self.constant(dtype, dtype.name, "a dtype")

    def seen(self):
        """Return those `constants` which the lines mention."""
        words = set(re.findall(r"\w+", "\n".join(self.lines)))
        return {name: pair for name, pair in self.constants.items() if name in words}

    def as_function(self, name, inputs, decorators=()):
        """Return the function with these lines.

        Args:
          name: what it is called.
          inputs: names of its arguments.
          decorators: lines in front of its head.

        Returns:
          Its text; the function; and the places in the user's program, by file name
          and line.
        """
        seen = self.seen()
        head = [comment(f"{n}: {said}") for n, (_, said) in seen.items()]
        head += [*decorators, f"def {name}({', '.join(inputs)}):"]
        text = "\n".join([*head, *self.lines, ""])
        namespace = {"np": np} | {n: value for n, (value, _) in seen.items()}
        function, file = function_from_text(name, text, namespace)
        first = len(head) + 1
        places = {first + i: source for i, source in self.sources.items()}
        return text, function, {file: places}


class JaxprScope(Scope):
    """A `Scope` that has an expression for each variable of a jaxpr.

    Args:
      letters: the names of variables where the jaxpr is printed.

    Attributes:
      expressions: what stands for each variable.
      promised: names that variables will have, settled before they are defined.
      evaluations: the functions of primitives that are called, by primitive and types.
    """

    def __init__(self, letters):
        super().__init__()
        self.letters, self.expressions = letters, {}
        self.promised, self.evaluations = {}, {}

    def read(self, atom):
        """Return an expression for a variable, or for a literal with its dtype."""
        literal = isinstance(atom, Literal)
        return self.scalar(atom) if literal else self.expressions[atom]

    def define(self, var):
        """Return the name of a variable that the next lines define."""
        letter = self.letters[var]
        name = self.promised.pop(var, None)
        name = name or (letter if letter == "_" else self.name(letter))
        self.expressions[var] = name
        return name

    def set_inputs(self, closed, operands):
        """Let operands stand for the inputs of a program, and names for its constants.

        Args:
          closed: a `ClosedJaxpr`.
          operands: expressions of its inputs.
        """
        for var, const in zip(closed.constvars, closed.consts):
            self.expressions[var] = self.array(const, self.letters[var], var.aval)
        self.expressions.update(zip(closed.invars, operands))
