"""Passes. What may we change without changing the answer?"""

# Made from chapters/22_passes_ground.md by `make chapter`;
# edit the chapter, not this file.
