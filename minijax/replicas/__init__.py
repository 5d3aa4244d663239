# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Replicas: the ground. How is one array spread over eight devices?"""
