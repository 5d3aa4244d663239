# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Text: the ground. What do a type, an address and a loop look like in LLVM's text?"""
