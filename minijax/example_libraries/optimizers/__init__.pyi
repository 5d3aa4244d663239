# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.training.optimizers import Optimizer as Optimizer
from minijax.training.optimizers import OptimizerState as OptimizerState
from minijax.training.optimizers import adam as adam
from minijax.training.optimizers import constant as constant
from minijax.training.optimizers import make_schedule as make_schedule
from minijax.training.optimizers import momentum as momentum
from minijax.training.optimizers import optimizer as optimizer
from minijax.training.optimizers import sgd as sgd
from minijax.training.schedules import JoinPoint as JoinPoint
from minijax.training.schedules import adagrad as adagrad
from minijax.training.schedules import adamax as adamax
from minijax.training.schedules import clip_grads as clip_grads
from minijax.training.schedules import exponential_decay as exponential_decay
from minijax.training.schedules import inverse_time_decay as inverse_time_decay
from minijax.training.schedules import l2_norm as l2_norm
from minijax.training.schedules import nesterov as nesterov
from minijax.training.schedules import pack_optimizer_state as pack_optimizer_state
from minijax.training.schedules import piecewise_constant as piecewise_constant
from minijax.training.schedules import polynomial_decay as polynomial_decay
from minijax.training.schedules import rmsprop as rmsprop
from minijax.training.schedules import rmsprop_momentum as rmsprop_momentum
from minijax.training.schedules import sm3 as sm3
from minijax.training.schedules import unpack_optimizer_state as unpack_optimizer_state
