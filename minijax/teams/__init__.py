"""Replicas that are machine code: where they meet, and who they are."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
