# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.sharding.deprecated import pjit as pjit
