# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.
"""NumPy: the ground. How is an index read, and where do NumPy's names live?"""
