# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Own rules: the ground. What does a rule see of a call?"""
