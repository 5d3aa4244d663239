# Made from chapters/16_scan_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Scan: the rest. What does a user call?"""
