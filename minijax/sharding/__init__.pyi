# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.devices import ManualAxisType as ManualAxisType
from minijax.arrays.devices import Sharding as Sharding
from minijax.arrays.devices import SingleDeviceSharding as SingleDeviceSharding
from minijax.arrays.transfer import make_single_device_sharding as make_single_device_sharding
from minijax.sharding.named_sharding import AbstractDevice as AbstractDevice
from minijax.sharding.named_sharding import AbstractMesh as AbstractMesh
from minijax.sharding.named_sharding import AxisType as AxisType
from minijax.sharding.named_sharding import Mesh as Mesh
from minijax.sharding.named_sharding import NamedSharding as NamedSharding
from minijax.sharding.named_sharding import PartitionSpec as PartitionSpec
from minijax.sharding.named_sharding import get_abstract_mesh as get_abstract_mesh
from minijax.sharding.named_sharding import get_mesh as get_mesh
from minijax.sharding.named_sharding import set_mesh as set_mesh
from minijax.sharding.named_sharding import use_abstract_mesh as use_abstract_mesh
from minijax.sharding.single_axis import auto_axes as auto_axes
from minijax.sharding.single_axis import explicit_axes as explicit_axes
from minijax.spmd.programs import reshard as reshard
