"""Einstein summation: letters for axes, the order of the products, the products."""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.
