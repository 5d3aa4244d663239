"""Linear algebra. How does a derivative go through a library we cannot see into?"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.
