# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.interpreters import ad as ad
from minijax.interpreters import batching as batching
