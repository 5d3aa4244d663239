# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Indexing: the ground. Which gathers are well formed, and which one is x[i]?"""
