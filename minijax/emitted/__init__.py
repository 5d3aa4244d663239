# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Emitted Python. Who reads the paper, and at what price?"""
