# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.signal.spectra import csd as csd
from minijax.scipy.signal.spectra import detrend as detrend
from minijax.scipy.signal.spectra import fftconvolve as fftconvolve
from minijax.scipy.signal.spectra import istft as istft
from minijax.scipy.signal.spectra import stft as stft
from minijax.scipy.signal.spectra import welch as welch
from minijax.windows.convolution_forms import convolve as convolve
from minijax.windows.convolution_forms import convolve2d as convolve2d
from minijax.windows.convolution_forms import correlate as correlate
from minijax.windows.convolution_forms import correlate2d as correlate2d
