# Made from chapters/22_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Vectors. How many numbers fit in an instruction?"""
