# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Callbacks: the ground. What is at the other end?"""
