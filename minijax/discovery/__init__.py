# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Discovery: the ground. How is a program watched that must not notice it?"""
