"""Emitted Python. Why read a program twice?"""

# Made from chapters/13_python_ground.md by `make chapter`;
# edit the chapter, not this file.
