"""Collectives in machine code: replicas that meet, exchange and reduce."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
