"""Public names of JAX that are not here yet, by package: ``"minijax.lax": "name …"``.

What will not be there has its reason in `_moved.ABSENT`.
"""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

LATER: dict[str, str] = {}
