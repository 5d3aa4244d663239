"""Elementary functions of floats, made of scalar operations.

`function` returns one by the name of its scalar operation; `expand` puts them into a
kernel.
"""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools

from minijax.functions.angles import acos, asin, atan, atan2, cos, sin, tan
from minijax.functions.error_functions import erf, erfc
from minijax.functions.exponentials import exp, tanh
from minijax.functions.hyperbolics import (
    acosh,
    asinh,
    atanh,
    cosh,
    exp2,
    expm1,
    log1p,
    sinh,
)
from minijax.functions.logarithms import log
from minijax.functions.powers import cbrt, hypot, power
from minijax.functions.range_reduction import FORMATS
from minijax.functions.scalar_functions import write_function, written_out
from minijax.kernels.scalar_ops import scalar_ops

bodies = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "log": log, "log1p": log1p, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "sin": sin, "cos": cos, "tan": tan,
    "asin": asin, "acos": acos, "atan": atan, "atan2": atan2,
    "pow": power, "cbrt": cbrt, "hypot": hypot,
    "erf": erf, "erfc": erfc,
}  # fmt: skip


def function(op, dtype):
    """Return the `ScalarFunction` of a scalar operation on floats, or None.

    Args:
      op: its name in `scalar_ops`.
      dtype: of the operands, as they are in registers.
    """
    if op not in bodies or dtype not in FORMATS:
        return None
    return written(f"{op}_{dtype.name}", bodies[op], dtype, scalar_ops[op].arity)


@functools.cache
def written(name, body, dtype, arity):
    """Return the `ScalarFunction` of a body, made once; another body has another."""
    return write_function(name, body, [dtype] * arity)


def expand(kernel):
    """Return a kernel in which elementary functions are written out."""
    return written_out(kernel, function)
