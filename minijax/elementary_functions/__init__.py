"""Functions. Which polynomial is exp?"""

# Made from chapters/23_functions_ground.md by `make chapter`;
# edit the chapter, not this file.
