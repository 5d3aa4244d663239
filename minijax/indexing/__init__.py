"""Indexing. How can a program look up what it has not seen?"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.
