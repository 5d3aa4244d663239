"""Windows. What is the gradient of a blur?"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.
