# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Threads: the ground. How is a sum cut for any number of threads?"""
