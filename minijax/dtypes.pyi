# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.compat.core import TypePromotionError as TypePromotionError
from minijax.compat.core import bfloat16 as bfloat16
from minijax.compat.core import canonicalize_dtype as canonicalize_dtype
from minijax.compat.core import extended as extended
from minijax.compat.core import finfo as finfo
from minijax.compat.core import float0 as float0
from minijax.compat.core import iinfo as iinfo
from minijax.compat.core import issubdtype as issubdtype
from minijax.compat.core import itemsize_bits as itemsize_bits
from minijax.compat.core import result_type as result_type
from minijax.compat.core import scalar_type_of as scalar_type_of
from minijax.prng.random_primitives import prng_key as prng_key
