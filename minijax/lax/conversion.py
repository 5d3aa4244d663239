"""Type conversion: the primitive that changes dtypes.

Reference: ``jax.lax.convert_element_type``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import is_python_scalar, typeof
from minijax.arrays.dtypes import is_in_force
from minijax.arrays.lattice import common_type
from minijax.arrays.numerics import convert, convertible, literal_of, warn_of_lost_parts
from minijax.core import Primitive

convert_element_type_p = Primitive("convert_element_type")
primitive_rules(
    convert_element_type_p,
    lambda x, new_dtype, weak_type: [
        x.update(dtype=convertible(x.dtype, new_dtype), weak_type=weak_type)
    ],
    convert,
)


def astype(operand, new_dtype, weak_type=False):
    """Convert to a dtype that is weak or not; numbers stay numbers, not operations.

    Args:
      operand: an array or a number.
      new_dtype: a canonical dtype.
      weak_type: whether the result gives way to other dtypes.
    """
    aval = typeof(operand)
    if (aval.dtype, aval.weak_type) == (new_dtype, weak_type):
        return operand
    if is_python_scalar(operand) and is_in_force(new_dtype):
        literal = literal_of(operand, aval.dtype, new_dtype, weak_type)
        if typeof(literal).dtype == new_dtype:  # a weak one follows the switch
            return literal
    warn_of_lost_parts(aval.dtype, new_dtype)
    [result] = convert_element_type_p.bind(
        operand, new_dtype=new_dtype, weak_type=bool(weak_type)
    )
    return result


def promote_dtypes(*args):
    """Give `args` their common dtype; what is alone stays as it is."""
    dtype, weak_type = common_type(*args)
    if len(args) == 1:
        weak_type = typeof(*args).weak_type
    return [astype(arg, dtype, weak_type) for arg in args]
