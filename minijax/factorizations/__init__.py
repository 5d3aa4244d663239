# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Linear algebra: the ground. What does NumPy leave for us to do with matrices?"""
