"""Functions of NumPy that are made of other functions of NumPy."""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.
