# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.dtype_names import TypePromotionError as TypePromotionError
from minijax.doorways.dtype_names import bfloat16 as bfloat16
from minijax.doorways.dtype_names import canonicalize_dtype as canonicalize_dtype
from minijax.doorways.dtype_names import extended as extended
from minijax.doorways.dtype_names import finfo as finfo
from minijax.doorways.dtype_names import float0 as float0
from minijax.doorways.dtype_names import iinfo as iinfo
from minijax.doorways.dtype_names import issubdtype as issubdtype
from minijax.doorways.dtype_names import itemsize_bits as itemsize_bits
from minijax.doorways.dtype_names import result_type as result_type
from minijax.doorways.dtype_names import scalar_type_of as scalar_type_of
from minijax.doorways.random_names import prng_key as prng_key
