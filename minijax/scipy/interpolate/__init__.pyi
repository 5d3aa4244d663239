# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.interpolate.grids import RegularGridInterpolator as RegularGridInterpolator
