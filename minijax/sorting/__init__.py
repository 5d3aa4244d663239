# Made from chapters/29_sorting_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Sorting: the ground. What does radix sort look like in machine code?"""
