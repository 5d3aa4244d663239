# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.extend import arguments as arguments
from minijax.extend import backend as backend
from minijax.extend import core as core
from minijax.extend import dtypes as dtypes
from minijax.extend import linear_util as linear_util
from minijax.extend import promotion as promotion
from minijax.extend import random as random
from minijax.extend import rules as rules
from minijax.extend import source_info_util as source_info_util
