"""Errors. Whose fault is it?"""

# Made from chapters/08_errors_ground.md by `make chapter`;
# edit the chapter, not this file.
