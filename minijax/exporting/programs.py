"""Programs in StableHLO: each equation is written by the rule of its primitive."""

# Made from chapters/40_export.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.core import RuleTable
from minijax.exporting.blocks import Program, Value, identifier, tensor_type
from minijax.jaxprs.jaxpr import ClosedJaxpr, Literal
from minijax.jaxprs.staging import trace_to_jaxpr

# Rules ``rule(block, eqn, *operands)`` write an equation and return its result, a
# `Value`, or the list of its results.
stablehlo_rules: RuleTable = RuleTable("stablehlo")


def write_equation(block, eqn, operands):
    """Write one equation; return its results, whose types have been compared."""
    try:
        rule = stablehlo_rules[eqn.primitive]
    except NotImplementedError as error:
        where = f" It is asked for at {eqn.source}." if eqn.source else ""
        raise NotImplementedError(f"{error}{where}") from None
    found = rule(block, eqn, *operands)
    results = [found] if isinstance(found, Value) else list(found)
    for var, result in zip(eqn.outvars, results, strict=True):
        if tensor_type(var.aval) != result.type:
            promised = tensor_type(var.aval)
            raise TypeError(f"{eqn.primitive}: {result.type} is not {promised}")
    return results


def write_program(block, closed, operands):
    """Write the equations of a `ClosedJaxpr` into a block; return its results."""
    constants = [
        block.constant(np.asarray(x), var.aval)
        for var, x in zip(closed.constvars, closed.consts)
    ]
    values = dict(zip([*closed.constvars, *closed.invars], [*constants, *operands]))

    def read(atom):
        if isinstance(atom, Literal):
            return block.constant(np.asarray(atom.val, atom.aval.dtype), atom.aval)
        return values[atom]

    for eqn in closed.eqns:
        results = write_equation(block, eqn, [read(atom) for atom in eqn.invars])
        values.update(zip(eqn.outvars, results))
    return [read(atom) for atom in closed.outvars]


def module_text(closed, name):
    """Return the text of a module whose function ``main`` is a `ClosedJaxpr`."""
    program = Program()

    def main(block, *operands):
        return write_program(block, closed, operands)

    program.function("main", "main", closed.in_avals, main, "public ")
    functions = "\n\n".join(reversed(program.texts))
    return f"module @jit_{identifier(name)} {{\n{functions}\n}}\n"


def called(block, f, *operands, **params):
    """Write what a function of arrays does; return its results."""
    avals = [x.aval for x in operands]
    jaxpr, consts = trace_to_jaxpr(lambda *xs: as_list(f(*xs, **params)), avals)
    return write_program(block, ClosedJaxpr(jaxpr, consts), operands)


def by_others(f):
    """Return the rule of a primitive that is a function of other primitives."""
    return lambda block, eqn, *operands: called(block, f, *operands, **eqn.params)


def as_list(x):
    """Return several results as a list, and one as a list of one."""
    return [*x] if isinstance(x, list | tuple) else [x]
