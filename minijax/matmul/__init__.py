# Made from chapters/23_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Matrix products. What is a matmul worth?"""
