# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.nn.initializers.initial_weights import Initializer as Initializer
from minijax.nn.initializers.initial_weights import constant as constant
from minijax.nn.initializers.initial_weights import delta_orthogonal as delta_orthogonal
from minijax.nn.initializers.initial_weights import glorot_normal as glorot_normal
from minijax.nn.initializers.initial_weights import glorot_uniform as glorot_uniform
from minijax.nn.initializers.initial_weights import he_normal as he_normal
from minijax.nn.initializers.initial_weights import he_uniform as he_uniform
from minijax.nn.initializers.initial_weights import kaiming_normal as kaiming_normal
from minijax.nn.initializers.initial_weights import kaiming_uniform as kaiming_uniform
from minijax.nn.initializers.initial_weights import lecun_normal as lecun_normal
from minijax.nn.initializers.initial_weights import lecun_uniform as lecun_uniform
from minijax.nn.initializers.initial_weights import normal as normal
from minijax.nn.initializers.initial_weights import ones as ones
from minijax.nn.initializers.initial_weights import orthogonal as orthogonal
from minijax.nn.initializers.initial_weights import truncated_normal as truncated_normal
from minijax.nn.initializers.initial_weights import uniform as uniform
from minijax.nn.initializers.initial_weights import variance_scaling as variance_scaling
from minijax.nn.initializers.initial_weights import xavier_normal as xavier_normal
from minijax.nn.initializers.initial_weights import xavier_uniform as xavier_uniform
from minijax.nn.initializers.initial_weights import zeros as zeros
