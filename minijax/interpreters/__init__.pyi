# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.interpreters import ad as ad
from minijax.interpreters import batching as batching
from minijax.interpreters import mlir as mlir
from minijax.interpreters import partial_eval as partial_eval
from minijax.interpreters import xla as xla
