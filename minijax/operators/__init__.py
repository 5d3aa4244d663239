"""NumPy. What are x[1:, ::-2] and x + 1, given primitives?"""

# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.
