# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.memory.spaces import Space as Space
