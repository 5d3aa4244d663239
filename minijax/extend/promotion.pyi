# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.config import promoting as promoting
from minijax.lax.arithmetic import astype as astype
from minijax.lax.arithmetic import promote_dtypes as promote_dtypes
from minijax.lax.arithmetic import promote_shapes as promote_shapes
from minijax.lax.reductions import promote_dtypes_inexact as promote_dtypes_inexact
from minijax.lax.reductions import promote_dtypes_numeric as promote_dtypes_numeric
