# Made from chapters/06_vmap_ground.md by `make chapter`;
# edit the chapter, not this file.
"""vmap: the ground. Which argument, and which axis?"""
