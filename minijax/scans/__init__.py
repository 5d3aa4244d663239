# Made from chapters/16_scan_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Scan: the ground. What becomes of the program of a step?"""
