# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.example_libraries import optimizers as optimizers
from minijax.example_libraries import stax as stax
