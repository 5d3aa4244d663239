# Made from chapters/28_sorting.md by `make chapter`;
# edit the chapter, not this file.
"""Sorting. How can a program put numbers in order that it has not seen?"""
