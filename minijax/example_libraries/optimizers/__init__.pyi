# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.training.gradient_lengths import JoinPoint as JoinPoint
from minijax.training.gradient_lengths import clip_grads as clip_grads
from minijax.training.gradient_lengths import l2_norm as l2_norm
from minijax.training.gradient_lengths import pack_optimizer_state as pack_optimizer_state
from minijax.training.gradient_lengths import unpack_optimizer_state as unpack_optimizer_state
from minijax.training.more_optimizers import adagrad as adagrad
from minijax.training.more_optimizers import adamax as adamax
from minijax.training.more_optimizers import nesterov as nesterov
from minijax.training.more_optimizers import rmsprop as rmsprop
from minijax.training.more_optimizers import rmsprop_momentum as rmsprop_momentum
from minijax.training.more_optimizers import sm3 as sm3
from minijax.training.schedules import exponential_decay as exponential_decay
from minijax.training.schedules import inverse_time_decay as inverse_time_decay
from minijax.training.schedules import piecewise_constant as piecewise_constant
from minijax.training.schedules import polynomial_decay as polynomial_decay
from minijax.training.tree_optimizers import Optimizer as Optimizer
from minijax.training.tree_optimizers import OptimizerState as OptimizerState
from minijax.training.tree_optimizers import adam as adam
from minijax.training.tree_optimizers import constant as constant
from minijax.training.tree_optimizers import make_schedule as make_schedule
from minijax.training.tree_optimizers import momentum as momentum
from minijax.training.tree_optimizers import optimizer as optimizer
from minijax.training.tree_optimizers import sgd as sgd
