# Made from chapters/24_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Vectors. How many numbers fit in an instruction?"""
