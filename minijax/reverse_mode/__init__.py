"""Transpose and grad. Can a program run backwards?"""

# Made from chapters/10_reverse_ground.md by `make chapter`;
# edit the chapter, not this file.
