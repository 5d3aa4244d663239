# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Jit. What exactly does jit cache?"""
