# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Jaxprs: the ground. How does a text know where its lines may end?"""
