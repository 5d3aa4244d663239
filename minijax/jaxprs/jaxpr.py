"""Programs as data: variables, equations, jaxprs, and how to run one.

A *jaxpr* is a program in its plainest form: inputs, one equation after the other, each
of which names its results and is never changed, and outputs.

Reference: ``jax.extend.core`` (``Jaxpr``, ``ClosedJaxpr``, ``JaxprEqn``, ``Var``,
``Literal``, ``jaxpr_as_fun``), ``jax.core.eval_jaxpr``.
"""

# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np

from minijax.arrays.array import held_as
from minijax.arrays.avals import typeof
from minijax.jaxprs.documents import flatten
from minijax.jaxprs.printing import print_jaxpr, write_eqn
from minijax.jaxprs.result_types import types_of_results
from minijax.jaxprs.variable_names import Writing


class Var:
    """A variable: one object for its definition and all of its uses.

    It has no name. The printer gives it a letter.

    Args:
      aval: the `ShapedArray` of the values that it stands for.
    """

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval

    def __repr__(self):
        return f"Var({self.aval.str_short()})"

    def spell(self, names):
        """Return the letter that the table `names` has for this variable."""
        return names[self]


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class JaxprEqn:
    """One operation: ``outvars = primitive[params] invars``.

    Attributes:
      invars: list of operands, each a `Var` or a `Literal`.
      outvars: list of the variables that the results define.
      primitive: the `Primitive`.
      params: its parameters, a dictionary with hashable values.
      source: the place in the user's program that bound it; None where none was sought.
    """

    invars: list
    outvars: list
    primitive: object
    params: dict
    source: object = None

    def __repr__(self):
        return flatten(write_eqn(self, Writing())).rstrip()

    def replace(self, **changes):
        """Return a copy in which some attributes are different."""
        return dataclasses.replace(self, **changes)


def new_eqn(primitive, invars, params):
    """Return the equation of an operation; its shape rule gives the results' types.

    Args:
      primitive: a `Primitive`.
      invars: list of operands, each a `Var` or a `Literal`.
      params: dictionary of its parameters.
    """
    avals = types_of_results(primitive, [atom.aval for atom in invars], params)
    return JaxprEqn(invars, [Var(aval) for aval in avals], primitive, params)


class _Program:
    """What jaxprs and closed jaxprs tell about themselves."""

    __slots__ = ()

    @property
    def in_avals(self):
        """The abstract values of the arguments."""
        return [var.aval for var in self.invars]

    @property
    def out_avals(self):
        """The abstract values of the results."""
        return [atom.aval for atom in self.outvars]

    def __repr__(self):
        return self.pretty_print()

    def pretty_print(self, **settings):
        """Return the text; the settings are those of `print_jaxpr`."""
        return print_jaxpr(self, **settings)


class _Closed(_Program):
    """The parts of the jaxpr inside, as attributes of the pair."""

    __slots__ = ()

    constvars = property(lambda self: self.jaxpr.constvars)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    eqns = property(lambda self: self.jaxpr.eqns)
    literals = property(lambda self: self.consts)

    def replace(self, jaxpr=None, consts=None):
        """Return a copy with another jaxpr or other constants."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr,
            self.consts if consts is None else consts,
        )


def _check_number(kind, variables, values):
    if len(variables) != len(values):
        types = ", ".join(var.aval.str_short() for var in variables) or "none"
        raise TypeError(
            f"A jaxpr with {len(variables)} {kind} ({types}) was given {len(values)}."
        )


@dataclasses.dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Jaxpr(_Program):
    """A program: ``{ lambda constvars ; invars. let eqns in outvars }``.

    Attributes:
      constvars: list of variables for the arrays that the program has picked up.
      invars: list of variables for the arguments.
      outvars: list of results, each a `Var` or a `Literal`.
      eqns: list of `JaxprEqn`, in the order in which they were bound.
    """

    constvars: list
    invars: list
    outvars: list
    eqns: list

    def replace(self, **changes):
        """Return a copy in which some attributes are different."""
        return dataclasses.replace(self, **changes)


class Literal:
    """A scalar that is written into an equation in place of a variable.

    Args:
      val: a Python scalar or a NumPy scalar.
      aval: its `ShapedArray`, by default that of `val`.
    """

    __slots__ = ("aval", "val")

    def __init__(self, val, aval=None):
        self.val, self.aval = val, typeof(val) if aval is None else aval

    @property
    def value(self):
        """The number, with the type that it had when it was written down."""
        return held_as(self.val, self.aval)

    def __repr__(self):
        return f"Literal({self.val})"

    def spell(self, names):
        """Return the number and its type, such as ``2.0:f32[]``."""
        number = np.asarray(self.val).item() if np.ndim(self.val) == 0 else "[...]"
        return f"{number}:{self.aval.str_short()}"


def eval_jaxpr(jaxpr, consts, *args):
    """Run a jaxpr: bind its equations, one after the other, under the current trace.

    Args:
      jaxpr: a `Jaxpr`.
      consts: values of its `constvars`.
      *args: values of its `invars`: arrays, scalars or tracers.

    Returns:
      The list of its results.

    Raises:
      TypeError: if there are too few or too many values.
    """
    _check_number("constants", jaxpr.constvars, consts)
    _check_number("arguments", jaxpr.invars, args)
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else values[atom]

    for eqn in jaxpr.eqns:
        results = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


class ClosedJaxpr(_Closed):
    """A jaxpr together with the values of its `constvars`.

    Args:
      jaxpr: a `Jaxpr`.
      consts: list of arrays, one for each of its `constvars`.
    """

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr, consts):
        _check_number("constants", jaxpr.constvars, consts)
        self.jaxpr, self.consts = jaxpr, list(consts)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list]:
    """Return the function, from arrays to a list of arrays, that a jaxpr describes.

    Args:
      closed_jaxpr: a `ClosedJaxpr`.
    """
    return partial(eval_jaxpr, closed_jaxpr.jaxpr, closed_jaxpr.consts)
