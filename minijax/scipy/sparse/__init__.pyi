# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.sparse import linalg as linalg
