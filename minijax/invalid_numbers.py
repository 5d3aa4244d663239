# Made from chapters/11c_callbacks.md by `make chapter`;
# edit the chapter, not this file.
"""Results that are not numbers, reported where they arise.

Reference: ``jax_debug_nans`` and ``jax_debug_infs`` of ``jax.config``.
"""

import os

import numpy as np

from minijax.array import asarray_impl, asbuffer
from minijax.core import impl_rules, watchers
from minijax.dtypes import is_inexact
from minijax.printing import jaxprs_in_params
from minijax.settings import config
from minijax.user_lines import user_line

SEARCHES = {"jax_debug_nans": ("nan", np.isnan), "jax_debug_infs": ("inf", np.isinf)}


def search(primitive, args, params, results):
    """Raise a FloatingPointError if a result is invalid and a switch forbids it."""
    for switch, (word, is_invalid) in SEARCHES.items():
        if getattr(config, switch) and any(_holds(is_invalid, x) for x in results):
            search_inside(primitive, args, params)
            line = user_line()
            place = f"\n  {line.quoted}" if line else ""
            raise FloatingPointError(
                f"invalid value ({word}) encountered in {primitive}{place}"
            )


def _holds(is_invalid, x):
    buffer = asbuffer(asarray_impl(x))
    return is_inexact(buffer.dtype) and bool(is_invalid(buffer).any())


def search_inside(primitive, args, params):
    """Run a primitive that contains programs again, one equation after the other."""
    if jaxprs_in_params(params):
        again = params | {"backend": None} if "backend" in params else params
        with config.override("minijax_backend", "interpreter"):
            impl_rules[primitive](*args, **again)


def _accept(value):
    value = str(value).lower() in ("1", "true", "on")
    if value and search not in watchers:
        watchers.append(search)
    return value


for _switch in SEARCHES:
    config.define(_switch, os.environ.get(_switch.upper(), "0"), _accept)
