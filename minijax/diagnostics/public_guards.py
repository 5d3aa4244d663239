"""API boundaries: a guard around each public function and each method of arrays.

Reference: ``jax._src.traceback_util.api_boundary``.
"""

# Made from chapters/08_errors_rest.md by `make chapter`;
# edit the chapter, not this file.

from types import FunctionType

from minijax._lazy import decorators
from minijax.arrays.interchange import Interchange
from minijax.core import methods
from minijax.diagnostics.scenes import GUARD
from minijax.diagnostics.tracebacks import guard_made, guarded
from minijax.diagnostics.user_lines import is_ours
from minijax.operators import conversions, syntax
from minijax.operators import methods as array_methods

_public: dict = {}  # from a function to the one that its user gets

# Packages of functions that JAX wraps in `jit`, which takes containers apart, and those
# of their functions that ask a container for its type.
OF_CONTAINERS = {"numpy", "nn", "scipy", "random", "image", "ops"}
OF_TYPES = {
    *"full_like zeros_like ones_like empty_like shape ndim size result_type".split(),
    *"iscomplexobj isrealobj promote_types issubdtype isdtype can_cast".split(),
    *"finfo iinfo dtype".split(),
}


def guard_public(value, package="minijax.numpy"):
    """Return a public object as its user gets it from a package: always the same."""
    if type(value) is not FunctionType:
        guard_brackets(type(value))
        return value
    keeps_promises = not OF_CONTAINERS.isdisjoint(package.split(".")[1:2])
    keeps_promises = keeps_promises and value.__name__ not in OF_TYPES
    if (value, keeps_promises) not in _public:
        _public[value, keeps_promises] = guard_made(value, keeps_promises)
    return _public[value, keeps_promises]


def guard_brackets(kind):
    """Put a guard around the brackets of a class of the package, as that of `r_`."""
    brackets = vars(kind).get("__getitem__")
    code = brackets.__code__ if type(brackets) is FunctionType else GUARD
    if code is not GUARD and is_ours(code.co_filename):
        kind.__getitem__ = guarded(brackets)


decorators.append(guard_public)


# The modules that fill the table of methods; they have to be there first.
FILLED = syntax, array_methods, conversions


method_guards: dict = {}  # from the function that a method was to its guard


def guard_methods():
    """Put a guard around the methods of arrays that have none of their own."""
    for name, method in list(methods.items()):
        own = name.startswith("__") and name not in ASKED
        has_guard = getattr(method, "__code__", None) is GUARD
        if type(method) is FunctionType and not own and not has_guard:
            method_guards[method] = guarded(method, keeps_promises=True)
            methods.supersede(name, method, method_guards[method])
    for name in SPELLED:
        setattr(Interchange, name, guarded(getattr(Interchange, name)))


# What Python asks of an array in other words than those of operators.
ASKED = {
    f"__{name}__"
    for name in "bool float int index complex getitem setitem iter len".split()
}
# What Python asks of the array itself, which may have been deleted.
SPELLED = "__repr__", "__str__", "__format__", "__array__"
guard_methods()
