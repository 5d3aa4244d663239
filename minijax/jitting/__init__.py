"""Jit. What exactly does jit cache?"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.
