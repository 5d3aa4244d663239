"""Vectors. How many numbers fit in an instruction?"""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.
