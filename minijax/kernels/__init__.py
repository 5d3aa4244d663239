# Made from chapters/17_kernels_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels: the ground. What does an operation mean, for each type of numbers?"""
