# Made from chapters/18_llvm.md by `make chapter`;
# edit the chapter, not this file.
"""Text. How does a sum become instructions?"""
