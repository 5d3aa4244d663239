# Made from chapters/06_vmap_rest.md by `make chapter`;
# edit the chapter, not this file.
"""vmap: the rest. How do the examples use each other's values?"""
