# Made from chapters/26_threads.md by `make chapter`;
# edit the chapter, not this file.
"""Threads. Who does the other half?"""
