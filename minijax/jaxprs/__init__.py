"""Jaxprs. What if we wrote the calls down?"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.
