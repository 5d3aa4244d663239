"""Many processes that run one program: ranks, and what they send to each other."""

# Made from chapters/37_machines_ground.md by `make chapter`;
# edit the chapter, not this file.
