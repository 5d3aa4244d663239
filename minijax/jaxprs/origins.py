"""What a value that is not there yet can say of itself, in messages.

Reference: ``TracerArrayConversionError``, ``DynamicJaxprTrace`` in JAX.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.core import Tracer
from minijax.errors import TracerArrayConversionError


class Origin:
    """What a trace writes down: a function, on behalf of a transformation.

    Args:
      transformation: its name, such as ``"make_jaxpr"``.
      function: the name of the user's function.
      argument_names: a function that returns the names of all flat arguments.
    """

    def __init__(self, transformation=None, function=None, argument_names=None):
        self.transformation, self.function = transformation, function
        self.argument_names = argument_names

    def describe(self, positions):
        """Return two sentences about a value made from the arguments at `positions`."""
        who = self.transformation or "A transformation"
        whom = f"the function {self.function!r}" if self.function else "a function"
        first = f"{who} is writing down {whom} without running it."
        return f"{first} {self._why(positions)}"

    def _why(self, positions):
        if not positions:
            return "Even what does not depend on its arguments is written down."
        if self.argument_names is None:
            return "This value depends on its arguments."
        names = self.argument_names()
        used = " and ".join(names[position] for position in positions)
        plural = "s" if len(positions) > 1 else ""
        return f"This value depends on the argument{plural} {used}."


def argument_positions(var, invars, eqns):
    """Return the positions of the arguments `invars` that `var` was made from.

    Args:
      var: a variable.
      invars: list of the variables of the arguments.
      eqns: list of `JaxprEqn`, in the order in which they were bound.
    """
    needed = {var}
    for eqn in reversed(eqns):
        if needed.intersection(eqn.outvars):
            needed.update(eqn.invars)
    return [i for i, invar in enumerate(invars) if invar in needed]


class ValuelessTracer(Tracer):
    """A tracer with no array behind it: it has an `aval`, and says where it is from."""

    __slots__ = ()

    def concrete(self):
        """Return None: there is no array behind this tracer yet."""
        return None

    def provenance(self):
        """Return the sentences on what is being written down: a subclass knows."""
        raise NotImplementedError(f"{type(self).__name__} has no provenance")

    def __repr__(self):
        return f"{type(self).__name__}({self.aval.str_short()})"

    def __array__(self, *args, **kwargs):
        raise TracerArrayConversionError(
            "The numpy.ndarray conversion method __array__() was called on traced "
            f"array {self!r}. {self.provenance()} Use the function of minijax.numpy "
            "instead of numpy's."
        )
