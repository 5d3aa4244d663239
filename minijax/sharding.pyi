# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.placement import ManualAxisType as ManualAxisType
from minijax.arrays.placement import Sharding as Sharding
from minijax.arrays.placement import SingleDeviceSharding as SingleDeviceSharding
