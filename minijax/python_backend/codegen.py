"""Code generation: Python source for a program, about a line for each equation.

A name in it stands for a NumPy array of exactly the dtype and shape that the jaxpr
says, or for a NumPy scalar where there are no axes.

NumPy's function is called where it means exactly what the primitive means.
"""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/13_python_rest.md: write_equation (5c45e39b).

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl
from minijax.arrays.devices import ignore_float_errors
from minijax.arrays.numerics import sum_accumulator_dtype
from minijax.core import RuleTable
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules
from minijax.custom_derivatives.linear_solves import CUSTOM_CALL_PRIMITIVES
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.compilation import backends, dce_for_compilation, default_backends
from minijax.jitting.primitive import jit_p
from minijax.python_backend.source import (
    INFIX_OPERATORS,
    UFUNCS,
    JaxprScope,
    Names,
    add_source_note,
    dot_general_text,
    is_evaluated,
    operand_texts,
    preserves_dtypes,
    to_buffer,
    var_names,
    write_evaluation,
)

# Rules ``rule(emitter, eqn, operands, results)`` write the lines of an equation.
python_rules: RuleTable = RuleTable("python")


def write_equation(emitter, eqn):
    """Write the lines of an equation, by the rule of its primitive."""
    emitter.on_behalf_of(eqn.source)  # the user's line, as a comment
    operands = [emitter.read(atom) for atom in eqn.invars]
    results = [emitter.define(var) for var in eqn.outvars]
    rules = {} if is_evaluated(eqn) else python_rules
    rule = rules.get(eqn.primitive, write_evaluation)
    rule(emitter, eqn, operands, results)


class PythonEmitter(JaxprScope):
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
        closed = dce_for_compilation(closed)
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
        self.letters, self.names = var_names(jaxpr), Names()
        self.functions, self.texts, self.sources = {}, [], {}

    def function(self, closed, hint):
        """Return the function of a program; the same program has the same function."""
        key = closed.jaxpr, *map(id, closed.consts)
        if key not in self.functions:
            name = self.names.fresh(hint)
            self.functions[key] = self._function(closed, name)
        return self.functions[key]

    def _function(self, closed, name):
        emitter = PythonEmitter(self)
        emitter.name(name)  # no variable may have it
        inputs = [emitter.name(self.letters[var]) for var in closed.invars]
        emitter.end(emitter.inline(closed, inputs))
        text, function, sources = emitter.as_function(name, inputs)
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
    function = ignore_float_errors(emission.function(closed, name))
    return "\n\n".join(emission.texts), function, emission.sources


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


# Primitives in Python: those that act on each element.


def expression_rule(spell):
    """Return the rule that writes one expression, or else calls the evaluation.

    Args:
      spell: a function ``(emitter, eqn, *operands)`` that returns the expression, or
        None where there is no short one.
    """

    def rule(emitter, eqn, operands, results):
        text = spell(emitter, eqn, *operands)
        if text is None:
            write_evaluation(emitter, eqn, operands, results)
        else:
            emitter.line(f"{results[0]} = {text}")

    return rule


def ufunc(name):
    """Return the rule of a primitive that is a universal function of NumPy."""

    def spell(emitter, eqn, *operands):
        if preserves_dtypes(name, eqn):
            return f"np.{name}({', '.join(operand_texts(eqn, operands))})"

    return expression_rule(spell)


def infix(symbol, name):
    """Return the rule of a primitive that is a Python operator."""

    def spell(emitter, eqn, *operands):
        if not preserves_dtypes(name, eqn):
            return None
        if eqn.invars[0].aval.dtype.kind == "c" and not eqn.outvars[0].aval.shape:
            # NumPy's scalars have code of their own, which may round otherwise.
            return f"np.{name}({', '.join(operands)})"
        left, right = operand_texts(eqn, operands)
        return f"{left} {symbol} {right}"

    return expression_rule(spell)


def register_python_rules(rules):
    """Add rules to the table, by the names of primitives of `lax`."""
    for primitive, rule in rules.items():
        python_rules[getattr(lax, f"{primitive}_p")] = rule


register_python_rules(
    {primitive: infix(*names) for primitive, names in INFIX_OPERATORS.items()}
)
register_python_rules({primitive: ufunc(name) for primitive, name in UFUNCS.items()})

# Primitives in Python: sums, and products of matrices.


def reduction(name):
    """Return the rule of a sum or product, which may need more bits on the way."""

    def spell(emitter, eqn, x):
        dtype, axes = eqn.invars[0].aval.dtype, eqn.params["axes"]
        enough = sum_accumulator_dtype(dtype)
        default = enough == dtype and dtype.kind in "fc"
        said = "" if default else f", dtype={emitter.dtype(enough)}"
        text = f"np.{name}.reduce({x}, axis={axes}{said})"
        return text if enough == dtype else f"{text}.astype({emitter.dtype(dtype)})"

    return expression_rule(spell)


python_rules[lax.reduce_sum_p] = reduction("add")
python_rules[lax.reduce_prod_p] = reduction("multiply")


python_rules[lax.dot_general_p] = expression_rule(dot_general_text)


# Primitives in Python: a program inside of a program, as a function that is called.


def _call(emitter, eqn, operands, results):
    callee = callee_rules[eqn.primitive](eqn)
    hint = eqn.params.get("name", eqn.primitive.name)
    inner = emitter.emission.function(callee, hint)
    name = emitter.constant(inner, inner.__name__, "a function above")
    left = f"[{', '.join(results)}] = " if results else ""
    emitter.line(f"{left}{name}({', '.join(operands)})")


python_rules.update(dict.fromkeys((jit_p, *CUSTOM_CALL_PRIMITIVES), _call))


# The backend that runs programs as Python functions.


class PythonProgram:
    """A program as a Python function over NumPy.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the function is called.

    Attributes:
      text: the source of the function, and of those that it calls.
      function: from buffers to a list of buffers.
    """

    placement, platforms = None, ("cpu",)

    def __init__(self, closed, name="program"):
        self.text, self.function, self._sources = emit(closed, name)
        self.out_avals = closed.out_avals

    def __call__(self, *args):
        """Return the list of results, from arrays and scalars."""
        try:
            outs = self.function(*map(to_buffer, args))
        except Exception as error:
            add_source_note(error, self._sources)
            raise
        pairs, place = zip(outs, self.out_avals), self.placement
        return [ArrayImpl(np.asarray(out), aval, place) for out, aval in pairs]


backends["python"] = PythonProgram
default_backends.supersede("cpu", "interpreter", "python")
