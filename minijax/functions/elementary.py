# Made from chapters/19_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Elementary functions of floats, made of scalar operations.

`function` returns one by the name of its scalar operation; `expand` puts them into a
kernel.
"""

import dataclasses
import functools

from minijax.functions.angles import cos, sin, tan
from minijax.functions.error_functions import erf, erfc
from minijax.functions.exponentials import cosh, exp, exp2, expm1, sinh, tanh
from minijax.functions.inverse_angles import acos, asin, atan, atan2
from minijax.functions.logarithms import acosh, asinh, atanh, log, log1p
from minijax.functions.powers import cbrt, hypot, power
from minijax.functions.scalar_functions import FORMATS, inline, write_function
from minijax.kernels.building import NodeWriter
from minijax.kernels.scalar_ops import scalar_ops

bodies = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "log": log, "log1p": log1p, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "sin": sin, "cos": cos, "tan": tan,
    "asin": asin, "acos": acos, "atan": atan, "atan2": atan2,
    "pow": power, "cbrt": cbrt, "hypot": hypot,
    "erf": erf, "erfc": erfc,
}  # fmt: skip


@functools.cache
def function(op, dtype):
    """Return the `ScalarFunction` of a scalar operation on floats, or None.

    Args:
      op: its name in `scalar_ops`.
      dtype: of the operands, as they are in registers.
    """
    if op not in bodies or dtype not in FORMATS:
        return None
    arity = scalar_ops[op].arity
    return write_function(f"{op}_{dtype.name}", bodies[op], [dtype] * arity)


def expand(kernel):
    """Return a kernel in which elementary functions are written out."""
    k, new = NodeWriter(), {}
    for node in kernel.nodes:
        args = tuple(new[arg] for arg in node.args)
        found = args and function(node.op, args[-1].dtype)
        if found:
            new[node] = inline(k, found, args)
        else:
            new[node] = k.write(dataclasses.replace(node, args=args))
    stores = [store.with_nodes(new) for store in kernel.stores]
    nodes = tuple(dict.fromkeys(k.nodes))
    return dataclasses.replace(kernel, nodes=nodes, stores=(*stores,))
