# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
"""Scan. Who keeps the steps?"""
