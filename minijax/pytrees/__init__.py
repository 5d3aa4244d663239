# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.
"""Pytrees. What is an argument?"""
