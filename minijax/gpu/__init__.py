"""GPU. What does a loop look like when ten thousand threads run it at once?"""

# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.
