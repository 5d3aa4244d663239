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


# What returns the place in the user's program that is running: an equation's `source`.
source_finder = Latest(lambda: None)

# What returns, for the trace around a program, a function that changes the operands of
# each equation on one device of many; None where there are no such devices.
fitting = Latest(lambda trace: None)

# What returns a value with the mesh axes of a variable, or of a type: see `fitting`.
fitted = Latest(lambda x, like: x)
