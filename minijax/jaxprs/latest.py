"""Single values that higher floors replace by their own."""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

class Latest:
    """A value that a higher floor replaces by its own; the latest one counts.

    A floor that replaces the value of another imports it, so that the highest floor is
    the latest in any order of imports.

    Args:
      value: what counts until then.
    """

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


# What returns a value with the mesh axes of a variable, or of a type.
fitted = Latest(lambda x, like: x)
