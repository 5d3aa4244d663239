# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.numpy.fft.transforms import fft as fft
from minijax.numpy.fft.transforms import fft2 as fft2
from minijax.numpy.fft.transforms import fftfreq as fftfreq
from minijax.numpy.fft.transforms import fftn as fftn
from minijax.numpy.fft.transforms import fftshift as fftshift
from minijax.numpy.fft.transforms import hfft as hfft
from minijax.numpy.fft.transforms import ifft as ifft
from minijax.numpy.fft.transforms import ifft2 as ifft2
from minijax.numpy.fft.transforms import ifftn as ifftn
from minijax.numpy.fft.transforms import ifftshift as ifftshift
from minijax.numpy.fft.transforms import ihfft as ihfft
from minijax.numpy.fft.transforms import irfft as irfft
from minijax.numpy.fft.transforms import irfft2 as irfft2
from minijax.numpy.fft.transforms import irfftn as irfftn
from minijax.numpy.fft.transforms import rfft as rfft
from minijax.numpy.fft.transforms import rfft2 as rfft2
from minijax.numpy.fft.transforms import rfftfreq as rfftfreq
from minijax.numpy.fft.transforms import rfftn as rfftn
