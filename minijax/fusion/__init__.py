"""Fusion. Why are four operations slower than one?"""

# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.
