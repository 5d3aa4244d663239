"""Passes: the rest. Which other rules does a compiler have?"""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.
