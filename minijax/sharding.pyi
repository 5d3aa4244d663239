# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.placement import SingleDeviceSharding as SingleDeviceSharding
from minijax.arrays.sharding_types import ManualAxisType as ManualAxisType
from minijax.arrays.sharding_types import Sharding as Sharding
from minijax.arrays.transfer import make_single_device_sharding as make_single_device_sharding
from minijax.mesh_maps.resharding import reshard as reshard
from minijax.replicas.meshes import AbstractDevice as AbstractDevice
from minijax.replicas.meshes import AbstractMesh as AbstractMesh
from minijax.replicas.meshes import AxisType as AxisType
from minijax.replicas.meshes import Mesh as Mesh
from minijax.replicas.meshes import get_abstract_mesh as get_abstract_mesh
from minijax.replicas.meshes import get_mesh as get_mesh
from minijax.replicas.meshes import set_mesh as set_mesh
from minijax.replicas.meshes import use_abstract_mesh as use_abstract_mesh
from minijax.replicas.named_shardings import NamedSharding as NamedSharding
from minijax.replicas.partition_specs import PartitionSpec as PartitionSpec
