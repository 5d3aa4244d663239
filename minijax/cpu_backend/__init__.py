"""Programs. Who runs the loop?"""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.
