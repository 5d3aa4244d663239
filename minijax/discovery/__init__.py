# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Discovery: the ground. Which operations may wait, and when are two the same?"""
