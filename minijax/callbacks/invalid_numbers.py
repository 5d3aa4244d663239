"""NaN checks: results that are not numbers, reported where they arise.

Reference: ``jax_debug_nans`` and ``jax_debug_infs`` of ``jax.config``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from functools import partial

import numpy as np

from minijax.arrays.array import asarray_impl
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.settings import _on_or_off, config
from minijax.core import impl_rules, watchers
from minijax.diagnostics.user_lines import user_line
from minijax.jaxprs.printing import jaxprs_in_params

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
    x = asarray_impl(x)
    return is_inexact(x.dtype) and bool(is_invalid(x._numbers()).any())


def search_inside(primitive, args, params):
    """Run a primitive that contains programs again, one equation after the other."""
    if jaxprs_in_params(params):
        again = params | {"backend": None} if "backend" in params else params
        with config.override("minijax_backend", "interpreter"):
            impl_rules[primitive](*args, **again)


_wanted = dict.fromkeys(SEARCHES, False)


def _engage(switch, values):
    _wanted[switch] = any(values)
    if search in watchers and not any(_wanted.values()):
        watchers.remove(search)
    elif search not in watchers and any(_wanted.values()):
        watchers.append(search)


for _switch in SEARCHES:
    _default, _told = os.environ.get(_switch.upper(), "0"), partial(_engage, _switch)
    config.define(_switch, _default, _on_or_off, _told)
