"""Sorting. How can a program sort numbers that it has not seen?"""

# Made from chapters/29_sorting_ground.md by `make chapter`;
# edit the chapter, not this file.
