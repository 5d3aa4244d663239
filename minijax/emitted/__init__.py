# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Emitted Python: the ground. How does one write a text that Python will read?"""
