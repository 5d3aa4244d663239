# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.sharding.older_names import pjit as pjit
