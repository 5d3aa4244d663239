# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.shard_map.older import shard_map as shard_map
