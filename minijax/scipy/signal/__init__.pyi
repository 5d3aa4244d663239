# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.signal.arrays_of_signals import convolve as convolve
from minijax.scipy.signal.arrays_of_signals import convolve2d as convolve2d
from minijax.scipy.signal.arrays_of_signals import correlate as correlate
from minijax.scipy.signal.arrays_of_signals import correlate2d as correlate2d
from minijax.scipy.signal.spectra import csd as csd
from minijax.scipy.signal.spectra import istft as istft
from minijax.scipy.signal.spectra import stft as stft
from minijax.scipy.signal.spectra import welch as welch
from minijax.scipy.signal.trends import detrend as detrend
from minijax.scipy.signal.trends import fftconvolve as fftconvolve
