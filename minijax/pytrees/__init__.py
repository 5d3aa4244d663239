# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Pytrees: the rest. What else can be done with a tree?"""
