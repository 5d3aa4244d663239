"""Arrays and dtypes. What is 1 + x?"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
