"""Export. Can a program leave the house?"""

# Made from chapters/40_export_ground.md by `make chapter`;
# edit the chapter, not this file.
