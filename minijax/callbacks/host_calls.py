"""A Python function at the other end of a program's line.

Reference: ``jax.pure_callback``.
"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import ArrayImpl, asarray_impl, asbuffer
from minijax.arrays.avals import typeof
from minijax.arrays.placement import host_device
from minijax.arrays.transfer import moved
from minijax.diagnostics.user_lines import user_line
from minijax.errors import JaxRuntimeError
from minijax.forgetting.programs import merge, partition
from minijax.jitting.compilation import on_device_of
from minijax.pytrees.treedefs import tree_flatten


class HostCall:
    """A function of trees, which a program calls with flat lists of arrays.

    Args:
      primitive: the name of what calls it, for messages.
      function: the user's function.
      in_tree: the structure of the pair of its positional and its keyword arguments.
      out_tree: the structure of its result.
    """

    def __init__(self, primitive, function, in_tree, out_tree=None):
        self.primitive, self.function = primitive, function
        self.in_tree, self.out_tree = in_tree, out_tree
        self.line = user_line()

    def __repr__(self):
        pair = f"callback_func={self.function!r}, in_tree={self.in_tree!r}"
        return f"_FlatCallback({pair})"

    def __call__(self, *arrays):
        """Call the function, and let its errors pass."""
        args, kwargs = self.in_tree.unflatten(arrays)
        return self.function(*args, **kwargs)

    @property
    def name(self):
        """What the function is called."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def look(self, *args):
        """Call the function on the host, for what it does; return no results."""
        home = host_device().committed
        with on_device_of(home):
            self(*[moved(asarray_impl(x), home) for x in args])
        return []

    def guarded(self, *values):
        """Call the function on the host; its errors become a JaxRuntimeError."""
        try:
            with on_device_of(host_device().committed):
                return self(*map(on_host, values))
        except Exception as error:
            raise self.failure(f"raised {type(error).__name__}: {error}") from error

    def failure(self, what):
        """Return the error that says what the function did, and who had it called."""
        place = f"\n  {self.line.quoted}" if self.line else ""
        return JaxRuntimeError(f"{self.primitive}: {self.name} {what}{place}")


def on_host(x):
    """Return an array or a buffer as an array of the CPU, whose type is not weak."""
    buffer = x.view() if isinstance(x, np.ndarray) else asbuffer(x, host_device())
    return ArrayImpl(buffer, typeof(x).update(weak_type=False), host_device().committed)


class PartlyKnown:
    """The structure of a tree some of whose leaves are known.

    Args:
      treedef: the structure of the whole.
      given: for each leaf whether it will be given.
      known: the list of the other leaves.
    """

    def __init__(self, treedef, given, known):
        self.treedef, self.given, self.known = treedef, given, known

    def unflatten(self, leaves):
        """Return the tree with these leaves in the places that are not known."""
        return self.treedef.unflatten(merge(self.given, self.known, leaves))


def operands_of(tree, is_operand):
    """Return those leaves of a tree that are operands, and what puts them back."""
    leaves, treedef = tree_flatten(tree)
    given = list(map(is_operand, leaves))
    known, operands = partition(given, leaves)
    return operands, PartlyKnown(treedef, given, known)


def is_array(leaf):
    """Return whether a leaf is an array, a tracer or a number."""
    try:
        typeof(leaf)
    except TypeError:
        return False
    return True


def bind_debug(primitive, function, arguments, is_operand=is_array, **params):
    """Bind one of the two primitives.

    Args:
      primitive: `debug_callback_p` or `debug_print_p`.
      function: called with the arguments; what it returns is ignored.
      arguments: the pair of its positional and its keyword arguments.
      is_operand: from leaves of the arguments to whether the program computes them.
      **params: further parameters of the primitive.
    """
    operands, tree = operands_of(arguments, is_operand)
    name = primitive.name.replace("_", ".")
    primitive.bind(*operands, callback=HostCall(name, function, tree), **params)


def effects_barrier() -> None:
    """Return when the effects of all programs that were called have happened.

    Programs run in the thread that calls them, so this is at once.

    Reference: ``jax.effects_barrier``.
    """
