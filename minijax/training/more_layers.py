"""Older names of initializers and of the logarithm of softmax.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.compositions.normalisation import log_softmax
from minijax.nn.initializers.initial_weights import glorot_normal, normal

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax
