"""Letters for the variables of a jaxpr, and how lists of variables are written.

Reference: ``JaxprPpContext`` in ``jax._src.core``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import defaultdict
from itertools import count

from minijax.jaxprs.documents import Break, Group, Nest, join


def letters(number):
    """Return the name of the variable with this number: a, …, z, ba, bb, …"""
    rest, digit = divmod(number, 26)
    return (letters(rest) if rest else "") + chr(ord("a") + digit)


class Writing:
    """What the parts of one text have in common.

    Args:
      jaxpr: the outermost jaxpr, if there is one.
      shared: names of jaxprs that are written once, in front.
      source_info: whether to note each equation's source.
      print_shapes: whether to write types where variables are defined.

    Attributes:
      names: the letter of each variable; a new one for a variable not met before.
    """

    def __init__(self, jaxpr=None, shared=(), source_info=False, print_shapes=True):
        self.shared = dict(shared)
        taken = set(self.shared.values())
        fresh = (name for name in map(letters, count()) if name not in taken)
        unused = unused_variables(jaxpr) if jaxpr else ()
        self.names = defaultdict(lambda: next(fresh), dict.fromkeys(unused, "_"))
        self.source_info, self.print_shapes = source_info, print_shapes


def unused_variables(jaxpr):
    """Return the results of equations that nothing reads."""
    read = {*jaxpr.outvars}.union(*(eqn.invars for eqn in jaxpr.eqns))
    return [var for eqn in jaxpr.eqns for var in eqn.outvars if var not in read]


def write_uses(atoms, writing, separator=""):
    """Return the document of variables and literals that are read."""
    return _fill([atom.spell(writing.names) for atom in atoms], separator)


def write_definitions(variables, writing):
    """Return the document of variables that are defined, with their types."""
    words = [var.spell(writing.names) for var in variables]
    if writing.print_shapes:
        avals = [var.aval.str_short() for var in variables]
        words = [f"{word}:{aval}" for word, aval in zip(words, avals)]
    return _fill(words)


def _fill(words, separator=""):
    return Nest(2, Group(join((separator, Group(Break())), words)))
