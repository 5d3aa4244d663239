# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.sharding.deprecated import shard_map as shard_map
