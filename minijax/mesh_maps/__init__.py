"""What stands under shard_map and pmap: threads, axes, rules and bodies."""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
