"""vmap. Who writes the batch dimension?"""

# Made from chapters/06_vmap_ground.md by `make chapter`;
# edit the chapter, not this file.
