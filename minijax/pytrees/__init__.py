# Made from chapters/05_pytrees_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Pytrees: the ground. What does the floor stand on that has no idea in it?"""
