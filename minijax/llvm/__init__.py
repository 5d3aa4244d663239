# Made from chapters/17_llvm_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Text. How does a sum become instructions?"""
