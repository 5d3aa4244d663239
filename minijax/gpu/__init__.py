# Made from chapters/34_gpu_ground.md by `make chapter`;
# edit the chapter, not this file.
"""GPU: the ground. What is an operation in CUDA C?"""
