"""Forward mode. Why are the digits of f(2.00001) already the derivative?"""

# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.
