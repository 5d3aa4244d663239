# Made from chapters/07_jaxprs.md by `make chapter`;
# edit the chapter, not this file.
"""Jaxprs. What if we wrote the calls down?"""
