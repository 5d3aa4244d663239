"""Callbacks. How does a compiled program talk to Python?"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.
