# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.dtypes import is_inexact as is_inexact
from minijax.arrays.numerics import complex_dtype_of as complex_dtype_of
from minijax.arrays.numerics import real_dtype_of as real_dtype_of
from minijax.lax.arithmetic import promote_dtypes as promote_dtypes
from minijax.lax.arithmetic import promote_shapes as promote_shapes
from minijax.lax.reductions import promote_dtypes_inexact as promote_dtypes_inexact
from minijax.lax.reductions import promote_dtypes_numeric as promote_dtypes_numeric
from minijax.lax.reductions import to_inexact_dtype as to_inexact_dtype
