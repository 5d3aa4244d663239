"""Calls. What does a call cost?"""

# Made from chapters/26_calls_ground.md by `make chapter`;
# edit the chapter, not this file.
