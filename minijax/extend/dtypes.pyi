# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.dtypes import dtype_kind as dtype_kind
from minijax.arrays.dtypes import dtype_name as dtype_name
from minijax.arrays.dtypes import is_inexact as is_inexact
from minijax.arrays.numerics import complex_dtype_of as complex_dtype_of
from minijax.arrays.numerics import real_dtype_of as real_dtype_of
from minijax.lax.reductions import max_of_dtype as max_of_dtype
from minijax.lax.reductions import min_of_dtype as min_of_dtype
from minijax.lax.reductions import to_inexact_dtype as to_inexact_dtype
