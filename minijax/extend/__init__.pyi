# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.extend import core as core
