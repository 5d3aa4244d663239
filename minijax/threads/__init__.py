"""Threads. Who does the other half?"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.
