"""Random: the rest. How are other distributions made of uniform and normal numbers?"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.
