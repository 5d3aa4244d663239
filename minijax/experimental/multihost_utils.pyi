# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.distributed.multihost import assert_equal as assert_equal
from minijax.distributed.multihost import broadcast_one_to_all as broadcast_one_to_all
from minijax.distributed.multihost import global_array_to_host_local_array as global_array_to_host_local_array
from minijax.distributed.multihost import host_local_array_to_global_array as host_local_array_to_global_array
from minijax.distributed.multihost import process_allgather as process_allgather
from minijax.distributed.multihost import sync_global_devices as sync_global_devices
