# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Windows: the ground. Where do windows lie, and which loops read them?"""
