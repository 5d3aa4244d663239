# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""NumPy's clothes. How does a tiny core wear NumPy's clothes?"""
