"""Emitted Python. What does it cost to read a program, and can we stop reading?"""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.
