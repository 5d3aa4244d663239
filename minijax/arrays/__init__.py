# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Arrays and dtypes: the ground. What does 1 + x stand on that no reader asks for?"""
