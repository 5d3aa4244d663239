"""Pytrees. What is an argument?"""

# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.
