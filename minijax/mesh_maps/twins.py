"""Programs that were traced apart and are the same: a key for them (hash consing).

Reference: the keys of JAX's compilation cache.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.forgetting.remembering import key_of_value
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal

FEW = 64  # programs of a mesh that are found by what they are


def likeness(program):
    """Return a key that two programs share if they are equal, and on the same lines.

    It holds identities of objects, so it is good for as long as the program lives.

    Args:
      program: a `ClosedJaxpr` or `Jaxpr`.
    """
    numbers: dict = {}

    def named(atom):
        if type(atom) is Literal:
            return atom.aval, _of_param(atom.val)
        return numbers.setdefault(atom, len(numbers))

    def defined(variables):
        kinds = [(x.aval, x.aval.manual_axis_type) for x in variables]
        return tuple(map(named, variables)), tuple(kinds)

    inner = getattr(program, "jaxpr", program)
    head = tuple(map(id, getattr(program, "consts", ())))
    head += defined(inner.constvars), defined(inner.invars)
    eqns = [
        (
            (eqn.primitive, *map(named, eqn.invars)), defined(eqn.outvars),
            tuple([(name, _of_param(x)) for name, x in eqn.params.items()]),
            eqn.source and (id(eqn.source.code), eqn.source.instruction),
        )
        for eqn in inner.eqns
    ]  # fmt: skip
    return *head, tuple(eqns), tuple(map(named, inner.outvars))


def _of_param(x):
    if isinstance(x, ClosedJaxpr | Jaxpr):
        return likeness(x)
    if isinstance(x, tuple):
        return type(x), *map(_of_param, x)
    return key_of_value(x)  # zeros have signs, and NaN bits


def of_twin(once, program, key, make):
    """Return what was made of a program that is the same, or make it of this one.

    Args:
      once: a `Once`.
      program: a `ClosedJaxpr`.
      key: what else it depends on.
      make: function without arguments.
    """
    once.limit, full = FEW, (likeness(program), key)
    try:
        hash(full)
    except TypeError:  # of a parameter
        return make()
    return once.get(full, lambda: (make(), program))[0]  # its objects keep their ids
