# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.numpy.fft.transforms import dct as dct
from minijax.numpy.fft.transforms import dctn as dctn
from minijax.numpy.fft.transforms import idct as idct
from minijax.numpy.fft.transforms import idctn as idctn
