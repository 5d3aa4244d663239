# Made from chapters/26_calls_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Calls: the ground. Who else could have written this file?"""
