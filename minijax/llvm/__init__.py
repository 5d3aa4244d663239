"""Text. How does a sum become instructions?"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.
