# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.signal.arrays_of_signals import convolve as convolve
from minijax.scipy.signal.arrays_of_signals import convolve2d as convolve2d
from minijax.scipy.signal.arrays_of_signals import correlate as correlate
from minijax.scipy.signal.arrays_of_signals import correlate2d as correlate2d
