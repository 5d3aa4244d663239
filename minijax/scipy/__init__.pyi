# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy import cluster as cluster
from minijax.scipy import fft as fft
from minijax.scipy import integrate as integrate
from minijax.scipy import interpolate as interpolate
from minijax.scipy import linalg as linalg
from minijax.scipy import ndimage as ndimage
from minijax.scipy import optimize as optimize
from minijax.scipy import signal as signal
from minijax.scipy import sparse as sparse
from minijax.scipy import spatial as spatial
from minijax.scipy import special as special
from minijax.scipy import stats as stats
