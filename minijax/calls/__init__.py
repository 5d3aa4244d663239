# Made from chapters/25_calls.md by `make chapter`;
# edit the chapter, not this file.
"""Calls. What does a call cost?"""
