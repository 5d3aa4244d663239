# Made from chapters/19_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Functions. Which polynomial is exp?"""
