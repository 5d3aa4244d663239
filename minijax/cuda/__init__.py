"""Device. Where do the numbers live?"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.
