# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Passes. What may we change without changing the answer?"""
