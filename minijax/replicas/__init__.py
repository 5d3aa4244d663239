"""Replicas. What does psum mean when every example has a machine of its own?"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
