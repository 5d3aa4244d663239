# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.ndimage.interpolation import map_coordinates as map_coordinates
