"""Memory. How few arrays are enough?"""

# Made from chapters/20_memory_ground.md by `make chapter`;
# edit the chapter, not this file.
