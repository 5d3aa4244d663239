# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.nn.weight_initializers import Initializer as Initializer
from minijax.nn.weight_initializers import constant as constant
from minijax.nn.weight_initializers import delta_orthogonal as delta_orthogonal
from minijax.nn.weight_initializers import glorot_normal as glorot_normal
from minijax.nn.weight_initializers import glorot_uniform as glorot_uniform
from minijax.nn.weight_initializers import he_normal as he_normal
from minijax.nn.weight_initializers import he_uniform as he_uniform
from minijax.nn.weight_initializers import kaiming_normal as kaiming_normal
from minijax.nn.weight_initializers import kaiming_uniform as kaiming_uniform
from minijax.nn.weight_initializers import lecun_normal as lecun_normal
from minijax.nn.weight_initializers import lecun_uniform as lecun_uniform
from minijax.nn.weight_initializers import normal as normal
from minijax.nn.weight_initializers import ones as ones
from minijax.nn.weight_initializers import orthogonal as orthogonal
from minijax.nn.weight_initializers import truncated_normal as truncated_normal
from minijax.nn.weight_initializers import uniform as uniform
from minijax.nn.weight_initializers import variance_scaling as variance_scaling
from minijax.nn.weight_initializers import xavier_normal as xavier_normal
from minijax.nn.weight_initializers import xavier_uniform as xavier_uniform
from minijax.nn.weight_initializers import zeros as zeros
