# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Memory. Where do the numbers live?"""
