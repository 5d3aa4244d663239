"""Linearize. Can we do the derivative later?"""

# Made from chapters/09_linearize.md by `make chapter`;
# edit the chapter, not this file.
