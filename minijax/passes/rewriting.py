"""Rewriting of programs: a walk down the equations, with rules that are asked.

A rule sees each equation before it is written, with the definitions of all its
operands behind it. It may know a better way to say the same.
"""

# Made from chapters/22_passes_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, as_array_impl
from minijax.arrays.dtypes import SHORT_DTYPE_NAMES
from minijax.batching.vmap import higher_order_primitives
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.jaxprs.types import infer_out_avals
from minijax.lax.arithmetic import convert_element_type_p
from minijax.rematerialization.caching import cache_for_object, weakref_cache


class JaxprRewriter:
    """A program in the making.

    Args:
      rules: a `RewriteRules`.
      inside: a function for the programs in the parameters of equations, from a
        `ClosedJaxpr` to another one.

    Attributes:
      eqns: the equations so far.
      definitions: from variables to the equations that define them.
      constants: from variables to the arrays that the program has picked up.
      source: of the equation that is being looked at.
    """

    def __init__(self, rules, inside):
        self.rules, self.inside, self.source = rules, inside, None
        self.eqns, self.definitions, self.seen = [], {}, {}
        self.constants, self.variables = {}, {}

    def write(self, eqn):
        """Write an equation; return the list of its results."""
        self.eqns.append(eqn)
        for var in eqn.outvars:
            self.definitions[var] = eqn
        return eqn.outvars

    def add(self, eqn):
        """Ask the rules about an equation; return what stands for its results."""
        for rule in self.rules[eqn.primitive]:
            results = rule(self, eqn)
            if results is not None:
                return results
        return self.write(eqn)

    def definition(self, atom, primitive):
        """Return the equation that defines an atom, if it is one of this primitive."""
        eqn = self.definitions.get(atom)
        return eqn if eqn is not None and eqn.primitive is primitive else None


class RewriteRules(dict):
    """From primitives to the rules that are asked about their equations, in order.

    Args:
      *ordered: pairs of a set of primitives, None for all of them, and a function
        ``rule(sweep, eqn)`` that returns what stands for the results of an equation, a
        list of variables and literals, or None.
    """

    def __init__(self, *ordered):
        super().__init__()
        self.ordered = ordered

    def __missing__(self, primitive):
        asked = [rule for some, rule in self.ordered if not some or primitive in some]
        self[primitive] = (*asked,)
        return self[primitive]


def rewrite_eqns(sweep, eqns, names, renew=False):
    """Add equations.

    Args:
      sweep: a `JaxprRewriter`.
      eqns: list of `JaxprEqn`.
      names: dictionary from variables to what stands for them; it grows.
      renew: whether results get new variables, since the equations may come again.
    """
    caller = sweep.source
    for eqn in eqns:
        new = with_names(eqn, names, renew, caller)
        sweep.source = new.source
        results = sweep.add(new)
        if results is not eqn.outvars:
            names.update(zip(eqn.outvars, results))


def with_names(eqn, names, renew, caller):
    """Return an equation with the operands that `names` says."""
    invars = [names.get(x, x) for x in eqn.invars]
    if invars == eqn.invars and not renew:
        return eqn
    outvars = [Var(x.aval) for x in eqn.outvars] if renew else eqn.outvars
    return JaxprEqn(invars, outvars, eqn.primitive, eqn.params, eqn.source or caller)


def bind_constants(sweep, closed):
    """Make a program's constants known; return what stands for their variables."""
    return {
        var: constant_atom(sweep, value, var)
        for var, value in zip(closed.constvars, closed.consts)
    }


def constant_atom(sweep, value, var=None):
    """Return what stands for an array: a literal for a scalar, or a variable."""
    value = value if hasattr(value, "aval") else as_array_impl(value)
    if (
        isinstance(value, ArrayImpl)
        and not value.shape
        and value.dtype in SHORT_DTYPE_NAMES
    ):
        return literal(value._numbers(), value.aval)
    if id(value) not in sweep.variables:
        var = sweep.variables[id(value)] = var or Var(value.aval)
        sweep.constants[var] = value
    return sweep.variables[id(value)]


def literal(number, aval):
    """Return the `Literal` of a number, be it of Python or NumPy."""
    return Literal(np.asarray(number, aval.dtype)[()], aval)


def cast_atom(sweep, atom, aval):
    """Return an atom in the type of the result for which it stands.

    What is the same number may differ in how weak its type is.
    """
    if atom.aval == aval:
        return atom
    if isinstance(atom, Literal):
        return Literal(atom.val, aval)
    params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type}
    eqn = JaxprEqn([atom], [Var(aval)], convert_element_type_p, params)
    return sweep.write(eqn)[0]


def rewrite_jaxpr(closed, rules, inside):
    """Return a program written anew, or None if it is as before.

    Args:
      closed: a `ClosedJaxpr`.
      rules: a `RewriteRules`.
      inside: a function for the programs in it, from a `ClosedJaxpr` to another one.
    """
    sweep = JaxprRewriter(rules, inside)
    names = bind_constants(sweep, closed)
    rewrite_eqns(sweep, closed.eqns, names)
    outvars = [cast_atom(sweep, names.get(x, x), x.aval) for x in closed.outvars]
    same = (sweep.eqns, outvars) == (closed.eqns, closed.outvars)
    if same and [*sweep.constants] == closed.constvars:
        return None
    jaxpr = Jaxpr([*sweep.constants], closed.invars, outvars, sweep.eqns)
    return ClosedJaxpr(jaxpr, [*sweep.constants.values()])


def look_inside(sweep, eqn):
    """A rule for all equations with programs in their parameters."""
    params = {x: map_inner_jaxprs(y, sweep.inside) for x, y in eqn.params.items()}
    if all(params[key] is value for key, value in eqn.params.items()):
        return None
    return sweep.add(eqn.replace(params=params))


def map_inner_jaxprs(value, change):
    """Return an equation's parameter with its programs changed; itself if none is.

    Args:
      value: a program, a tuple (whose items may have names) with programs, or anything.
      change: a function from a `ClosedJaxpr` to another one, or to itself.
    """
    if isinstance(value, ClosedJaxpr):
        return change(value)
    if not isinstance(value, tuple) or ClosedJaxpr not in map(type, value):
        return value
    parts = [map_inner_jaxprs(part, change) for part in value]
    if all(a is b for a, b in zip(parts, value)):
        return value
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)


INNER_JAXPR_RULES = higher_order_primitives, look_inside


class MemoizedPass:
    """A pass that is done once for each program, and then knows the result.

    Args:
      change: a function of a `ClosedJaxpr`, and of the pass itself, that returns
        another program, or None if it would be the same. What it returns is not
        changed again.
    """

    def __init__(self, change):
        self.run_once, self.known = change, weakref_cache()

    def __call__(self, closed):
        """Return the program that takes the place of another one."""
        once = cache_for_object(self.known, closed)
        [found] = once.get(None, lambda: [self.run_once(closed, self)])
        return closed if found is None else self.settled(found)

    def settled(self, closed):
        """Return a program, and remember that it stays as it is."""
        cache_for_object(self.known, closed).get(None, lambda: [None])
        return closed


def rewrite_pass(*ordered):
    """Return a pass: a function from a `ClosedJaxpr` to another one.

    Args:
      *ordered: the pairs for `RewriteRules`.
    """
    rules = RewriteRules(*ordered)
    return MemoizedPass(lambda closed, inside: rewrite_jaxpr(closed, rules, inside))


def insert_eqn(sweep, primitive, *operands, **params):
    """Add an equation that was not there before; return the list of its results."""
    avals = infer_out_avals(primitive, [x.aval for x in operands], params)
    eqn = JaxprEqn([*operands], [*map(Var, avals)], primitive, params, sweep.source)
    return sweep.add(eqn)


def broadcast_atom(sweep, atom, shape):
    """Return an atom stretched to a shape, if it is not of this shape."""
    if atom.aval.shape == shape:
        return atom
    places = tuple(range(len(shape))) if atom.aval.shape else ()
    params = {"shape": shape, "broadcast_dimensions": places}
    return insert_eqn(sweep, lax.broadcast_in_dim_p, atom, **params)[0]


def broadcast_source(sweep, atom):
    """Return the scalar of which an atom is a broadcast, or else the atom."""
    eqn = sweep.definition(atom, lax.broadcast_in_dim_p)
    return atom if eqn is None or eqn.invars[0].aval.shape else eqn.invars[0]


def splat_value(sweep, atom):
    """Return the literal that all elements of an atom are, or None."""
    found = broadcast_source(sweep, atom)
    return found if isinstance(found, Literal) else None
