"""Discovery. Could the machine find out by itself what is worth compiling?"""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.
