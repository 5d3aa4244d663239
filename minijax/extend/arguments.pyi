# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.dtypes import check_dtype as check_dtype
from minijax.arrays.dtypes import warn_user as warn_user
from minijax.arrays.interchange import check_room as check_room
from minijax.arrays.interchange import promised as promised
from minijax.arrays.numerics import canonicalize_axis as canonicalize_axis
from minijax.arrays.numerics import canonicalize_int_tuple as canonicalize_int_tuple
from minijax.arrays.numerics import check_kind as check_kind
from minijax.arrays.numerics import check_rank as check_rank
from minijax.arrays.numerics import dim_size_along as dim_size_along
from minijax.arrays.numerics import operator_index as operator_index
from minijax.arrays.out_sharding import PLACED_CODE as PLACED_CODE
from minijax.arrays.out_sharding import place_result as place_result
from minijax.arrays.out_sharding import with_out_sharding as with_out_sharding
from minijax.lax.reductions import check_arraylike as check_arraylike
from minijax.lax.reductions import is_arraylike as is_arraylike
from minijax.numpy.operators import concrete_numpy as concrete_numpy
from minijax.numpy.shapes import as_arraylike as as_arraylike
from minijax.numpy.shapes import canonicalize_shape as canonicalize_shape
from minijax.pytrees.api_util import flatten_like as flatten_like
