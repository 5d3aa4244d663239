# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.
"""Branches. Who owns the if?"""
