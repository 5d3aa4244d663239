# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.placement import SingleDeviceSharding as SingleDeviceSharding
from minijax.arrays.sharding_types import ManualAxisType as ManualAxisType
from minijax.arrays.sharding_types import Sharding as Sharding
