"""How many operands an elementwise primitive has."""

import inspect

from minijax import lax

# Primitives whose function has another name; `copy` and `device_put` have none there.
PUBLIC = {x: f"bitwise_{x}" for x in ("and", "or", "xor", "not")}
PUBLIC["add_any"] = "add"


def arity(primitive):
    """The parameters without a default of the function in `lax` that binds it.

    So what a page makes by `unary` or `binary` is met by the batteries with the right
    number of operands, and stands in no list.
    """
    function = getattr(lax, PUBLIC.get(primitive.name, primitive.name), None)
    if function is None:
        return 1
    empty = inspect.Parameter.empty
    parameters = inspect.signature(function).parameters.values()
    return len([x for x in parameters if x.default is empty])
