# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Programs: the ground. What does a function need to know to do a list of steps?"""
