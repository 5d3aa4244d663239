"""Python source that is being written: names, scopes, spelling of operations."""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import keyword
import linecache
import re
import unicodedata
import weakref
from contextlib import contextmanager
from functools import cache
from itertools import chain, count
from math import prod
from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer, eval_rules
from minijax.arrays.dtypes import WIDE_DTYPES, short_dtype_name
from minijax.arrays.numerics import (
    BLOCKED_SUM_SIZES,
    lhs_free_axes,
    matmul_impl,
    sizes_of_axes,
    sum_accumulator_dtype,
)
from minijax.core import EvalTrace, impl_rules, set_current_trace
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.pretty_printer import PrintContext, pp_jaxpr, shared_jaxprs

# Python source that is being written: names, comments, lines.

RESERVED = frozenset([*keyword.kwlist, *dir(builtins), "np", "_"])


def var_names(jaxpr):
    """Return the names that variables have where a jaxpr is printed."""
    shared = shared_jaxprs(jaxpr)
    writing = PrintContext(jaxpr, shared)
    for each in [*shared, jaxpr]:
        pp_jaxpr(each, writing)
    return writing.names


def identifier(hint):
    """Return a text as an identifier, in the form in which Python reads it."""
    letters = unicodedata.normalize("NFKC", hint.strip("<>"))
    fits = [c.isalnum() and f"_{c}".isidentifier() for c in letters]
    word = "".join(c if fit else "_" for c, fit in zip(letters, fits))
    return word if word.isidentifier() else f"_{word}"


class Names:
    """The names of one scope, each of which is given once."""

    def __init__(self):
        self.taken = set(RESERVED)

    def fresh(self, hint):
        """Return `hint` as an identifier, or one that begins with it if it is taken."""
        stem = identifier(hint)
        tries = chain([stem, f"{stem}_"], (f"{stem}_{number}" for number in count(2)))
        name = next(name for name in tries if name not in self.taken)
        self.taken.add(name)
        return name


def comment(text):
    """Return a text as a comment, on one line, of what can be printed."""
    printable = "".join([c if c.isprintable() else " " for c in text])
    return f"# {' '.join(printable.split())}"


def remark(source):
    """Return a comment on a place in the user's program: its text, or where it is."""
    return comment(getattr(source, "text", "") or str(source))


class Lines:
    """The body of a function, line by line.

    Attributes:
      sources: the place in the user's program of each line that has one, by number.
    """

    def __init__(self):
        self.lines, self.sources, self.indent = [], {}, "    "
        self._source, self._remark = None, None

    def line(self, text):
        """Write one line."""
        if self._source is not None:
            self.sources[len(self.lines)] = self._source
        self.lines.append(self.indent + text)

    def on_behalf_of(self, source):
        """Note which place in the user's program the next lines come from, or None."""
        self._source, last = source, self._remark
        self._remark = last if source is None else remark(source)
        if self._remark != last:
            self.line(self._remark)

    @contextmanager
    def block(self, head):
        """Write `head`; what is written inside the ``with`` statement is its body."""
        self.line(head)
        outer, self.indent = self.indent, self.indent + "    "
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.indent = outer

    def forget(self, names):
        """Write that some names are not needed any more."""
        names = [name for name in dict.fromkeys(names) if name != "_"]
        if names:
            self.line(f"del {', '.join(names)}")

    def assign(self, targets, values):
        """Give names to values, all at once."""
        pairs = [(t, v) for t, v in zip(targets, values) if t not in (v, "_")]
        if pairs:
            left, right = map(", ".join, zip(*pairs))
            self.line(f"{left} = {right}")

    def end(self, values):
        """Write the end of the function, at which everything is forgotten."""
        while self.lines and self.lines[-1].startswith("    del "):
            self.lines.pop()
        self.line(f"return [{', '.join(values)}]")


# What an emitted function reads from outside, and how its text becomes a function.

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


def add_source_note(error, sources):
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


def numpy_scalar_of_literal(literal):
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
        value = numpy_scalar_of_literal(literal)
        dtype = short_dtype_name(value.dtype)
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
        if np.dtype(dtype).isbuiltin == 1:
            return f"np.{dtype.name}"
        return self.constant(dtype, dtype.name, "a dtype")

    def seen(self):
        """Return those `constants` which the lines mention."""
        words = set(re.findall(r"\w+", "\n".join(self.lines)))
        return {name: pair for name, pair in self.constants.items() if name in words}

    def as_function(self, name, inputs):
        """Return the function with these lines.

        Args:
          name: what it is called.
          inputs: names of its arguments.

        Returns:
          Its text; the function; and the places in the user's program, by file name
          and line.
        """
        seen = self.seen()
        head = [comment(f"{n}: {said}") for n, (_, said) in seen.items()]
        head += [f"def {name}({', '.join(inputs)}):"]
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
      declared_types: names that variables will have, settled before they are defined.
      evaluations: the functions of primitives that are called, by primitive and types.
    """

    def __init__(self, letters):
        super().__init__()
        self.letters, self.expressions = letters, {}
        self.declared_types, self.evaluations = {}, {}

    def read(self, atom):
        """Return an expression for a variable, or for a literal with its dtype."""
        literal = isinstance(atom, Literal)
        return self.scalar(atom) if literal else self.expressions[atom]

    def define(self, var):
        """Return the name of a variable that the next lines define."""
        letter = self.letters[var]
        name = self.declared_types.pop(var, None)
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


# Primitives that have no Python of their own, as functions on buffers.


def is_evaluated(eqn):
    """Return whether an equation has narrow numbers, which only evaluations know."""
    dtypes = [atom.aval.dtype for atom in (*eqn.invars, *eqn.outvars)]
    return eqn.primitive in eval_rules and not WIDE_DTYPES.keys().isdisjoint(dtypes)


def bind_impl(primitive, in_avals, out_avals):
    """Return a function of buffers and parameters that evaluates a primitive.

    Args:
      primitive: a `Primitive` with an entry in `eval_rules`, or a rule in
        `impl_rules`.
      in_avals, out_avals: types of its operands and results.

    Returns:
      A function that returns the one result, or else a list of results.
    """
    compute = eval_rules.get(primitive) or computation_by_impl(primitive, in_avals)

    def evaluate(*buffers, **params):
        results = compute(np, *buffers, **params)
        results = results if isinstance(results, list) else [results]
        results = list(map(result_buffer_of_type, results, out_avals))
        return results[0] if len(results) == 1 else results

    return evaluate


def result_buffer_of_type(result, aval):
    """Return a result as a buffer of the dtype of `aval`, or a scalar without axes."""
    buffer = np.asarray(result, aval.dtype)
    return buffer if aval.shape else buffer[()]


def to_buffer(x):
    """Return the buffer of an argument, or a scalar if it has no axes."""
    buffer = x._buffer if type(x) is ArrayImpl else asbuffer(x)
    return buffer if buffer.shape else buffer[()]


def computation_by_impl(primitive, avals):
    """Return what the impl rule of a primitive does, as a function on buffers."""

    def compute(xp, *buffers, **params):
        arrays = [ArrayImpl(xp.asarray(x), aval) for x, aval in zip(buffers, avals)]
        with set_current_trace(EvalTrace()):
            return list(map(asbuffer, impl_rules[primitive](*arrays, **params)))

    return compute


def write_evaluation(
    emitter: Any, eqn: Any, operands: list[str], results: list[str]
) -> None:
    """Write a call of the primitive's own evaluation: the rule of those without one."""
    avals = [tuple(atom.aval for atom in atoms) for atoms in (eqn.invars, eqn.outvars)]
    key, made = (eqn.primitive, *avals), emitter.evaluations
    if key not in made:
        made[key] = bind_impl(*key)
    name = eqn.primitive.name
    function = emitter.constant(made[key], name, f"evaluates the primitive {name}")
    params = [f"{k}={spell_param(emitter, v)}" for k, v in eqn.params.items()]
    call = f"{function}({', '.join([*operands, *params])})"
    emitter.line(f"{', '.join(results)} = {call}" if results else call)


LITERAL_TYPES = bool, int, float, str, type(None)


def spell_param(emitter, value):
    """Return an expression for a parameter of an equation."""
    if type(value) in LITERAL_TYPES and repr(value) not in ("inf", "-inf", "nan"):
        return repr(value)
    if type(value) is tuple:
        parts = [spell_param(emitter, part) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if isinstance(value, np.dtype):
        return emitter.constant(value, value.name, "a dtype")
    return emitter.constant(value, "param")


# How operations and numbers are spelled in NumPy, and where that means the same.


def python_number_text(atom):
    """Return a literal as Python writes the number, or None if it needs its dtype.

    NumPy gives a Python number the dtype of the operand beside it.
    """
    scalar = numpy_scalar_of_literal(atom) if isinstance(atom, Literal) else None
    if scalar is None or scalar.dtype.kind not in "biuf" or not np.isfinite(scalar):
        return None
    text, kind = str(scalar), type(scalar.item())
    same = kind is bool or scalar.dtype.type(kind(text)) == scalar
    return text if same else None


def operand_texts(eqn, operands):
    """Return operands, with literals as plain numbers unless there is nothing else."""
    if all(isinstance(atom, Literal) for atom in eqn.invars):
        return operands
    return [python_number_text(atom) or x for atom, x in zip(eqn.invars, operands)]


LOSING = "divide", "expm1", "log1p"  # infinities, zeros, digits of complex numbers


@cache
def means(name, *dtypes):
    """Return whether a function of NumPy takes and gives exactly these dtypes."""
    if name in LOSING and dtypes[0].kind == "c":
        return False
    try:
        return getattr(np, name).resolve_dtypes((*dtypes[:-1], None)) == dtypes
    except TypeError:
        return False


def preserves_dtypes(name, eqn):
    """Return whether a function of NumPy has the dtypes of an equation."""
    return means(name, *[atom.aval.dtype for atom in [*eqn.invars, *eqn.outvars]])


INFIX_OPERATORS = {
    "add": ("+", "add"), "sub": ("-", "subtract"), "mul": ("*", "multiply"),
    "add_any": ("+", "add"), "div": ("/", "divide"),
    "eq": ("==", "equal"), "ne": ("!=", "not_equal"), "lt": ("<", "less"),
    "le": ("<=", "less_equal"), "gt": (">", "greater"), "ge": (">=", "greater_equal"),
    "and": ("&", "bitwise_and"), "or": ("|", "bitwise_or"), "xor": ("^", "bitwise_xor"),
}  # fmt: skip

UFUNCS = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p",
    "sqrt": "sqrt", "cbrt": "cbrt", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "abs": "abs", "conj": "conj", "floor": "floor", "ceil": "ceil",
    "is_finite": "isfinite", "max": "maximum", "min": "minimum",
}  # fmt: skip


def arranged(emitter, x, aval, order, dtype, shape):
    """Return an operand of a product: transposed, converted, reshaped, if need be."""
    if [*order] != [*range(aval.ndim)]:
        x = f"{x}.transpose({(*order,)})"
    if aval.dtype != dtype:
        x = f"{x}.astype({emitter.dtype(dtype)})"
    return x if sizes_of_axes(aval.shape, order) == shape else f"{x}.reshape({shape})"


def product_axes(lhs, rhs, dimension_numbers):
    """Return the order of axes for each side, and the sizes that `matmul` sees.

    The sizes are those of the batch, a tuple, and the numbers of rows, of elements
    that are summed, and of columns.
    """
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = dimension_numbers
    rows = lhs_free_axes(lhs.ndim, lhs_summed, lhs_batch)
    columns = lhs_free_axes(rhs.ndim, rhs_summed, rhs_batch)
    orders = (*lhs_batch, *rows, *lhs_summed), (*rhs_batch, *rhs_summed, *columns)
    merged = (lhs, rows), (lhs, lhs_summed), (rhs, columns)
    counts = [prod(sizes_of_axes(aval.shape, axes)) for aval, axes in merged]
    return orders, sizes_of_axes(lhs.shape, lhs_batch), counts


def dot_general_text(emitter, eqn, x, y):
    """Return the expression of a product of matrices, a `dot_general`."""
    lhs, rhs, out = [atom.aval for atom in [*eqn.invars, *eqn.outvars]]
    orders, batch, counts = product_axes(lhs, rhs, eqn.params["dimension_numbers"])
    rows, summed, columns = counts
    preferred = eqn.params["preferred_element_type"]
    dtype = sum_accumulator_dtype(preferred or np.result_type(lhs.dtype, rhs.dtype))
    left = arranged(emitter, x, lhs, orders[0], dtype, (*batch, rows, summed))
    right = arranged(emitter, y, rhs, orders[1], dtype, (*batch, summed, columns))
    text = f"{left} @ {right}"
    if summed >= BLOCKED_SUM_SIZES:
        said = "multiplies matrices, in blocks if sums are long"
        text = (
            f"{emitter.constant(matmul_impl, 'matmul_impl', said)}(np, {left}, {right})"
        )
    if not out.shape:
        text = f"({text})[0, 0]"
    elif out.shape != (*batch, rows, columns):
        text = f"({text}).reshape({out.shape})"
    if dtype != out.dtype:
        text = f"({text}).astype({emitter.dtype(out.dtype)})"
    return text
