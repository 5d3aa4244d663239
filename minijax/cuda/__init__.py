# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Device: the ground. What does a program ask of a card?"""
