"""The library. How do 170 primitives carry a thousand names?"""

# Made from chapters/33_library.md by `make chapter`;
# edit the chapter, not this file.
