"""Functions with derivatives of their own, and what their rules see.

Reference: ``jax.custom_derivatives``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from importlib import import_module

PLACES = {
    "minijax": "closure_convert custom_gradient custom_jvp custom_vjp",
    "minijax.custom_derivatives.linear_solves": "linear_call",
    "minijax.custom_derivatives.flat_functions": (
        "CustomVJPPrimal SymbolicZero custom_vjp_primal_tree_values zero_from_primal"
    ),
    "minijax.custom_derivatives.custom_jvp_vjp": "custom_jvp_call_p custom_vjp_call_p",
}


def __getattr__(name):
    for place, names in PLACES.items():
        if name in names.split():
            return getattr(import_module(place), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(" ".join(PLACES.values()).split())
