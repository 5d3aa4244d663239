# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.interpolation import vq as vq
