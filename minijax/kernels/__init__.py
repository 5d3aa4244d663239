"""Kernels. What's a loop, written down?"""

# Made from chapters/17_kernels_ground.md by `make chapter`;
# edit the chapter, not this file.
