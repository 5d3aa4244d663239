# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.transfer import from_dlpack as from_dlpack
from minijax.arrays.transfer import is_supported_dtype as is_supported_dtype
