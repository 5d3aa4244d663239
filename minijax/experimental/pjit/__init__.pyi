# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.pjit.older import pjit as pjit
