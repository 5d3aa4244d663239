"""Training. Can it be done in one evening: a network that learns?"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.
