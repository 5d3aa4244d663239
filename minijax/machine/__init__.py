# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Programs. Who runs the loop?"""
