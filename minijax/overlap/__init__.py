"""Exchanges that run while a program computes: two steps each, and their schedule."""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.
