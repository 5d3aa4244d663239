# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.fft.cosines import dct as dct
from minijax.scipy.fft.cosines import dctn as dctn
from minijax.scipy.fft.cosines import idct as idct
from minijax.scipy.fft.cosines import idctn as idctn
