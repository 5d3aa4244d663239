"""Matrix products. What's a matmul worth?"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.
