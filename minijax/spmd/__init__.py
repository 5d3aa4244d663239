"""Programs for arrays in parts: single program, multiple data."""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
