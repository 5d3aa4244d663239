"""Scan. Who keeps the steps?"""

# Made from chapters/16_scan_ground.md by `make chapter`;
# edit the chapter, not this file.
