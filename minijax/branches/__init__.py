# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Branches: the ground. How can programs that were written apart be given one shape?"""
