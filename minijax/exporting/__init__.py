# Made from chapters/40_export_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Export: the ground. How is a text made in which each value has a name and a type?"""
