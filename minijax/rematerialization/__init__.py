"""Custom derivatives. What if the derivative is wrong, or slow?"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.
