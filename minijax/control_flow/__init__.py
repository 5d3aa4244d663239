"""Branches. Who owns the if?"""

# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.
