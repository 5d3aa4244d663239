# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Fusion: the ground. What does a launch do?"""
