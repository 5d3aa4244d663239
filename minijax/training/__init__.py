# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Training: the ground. Which layers are two short functions?"""
