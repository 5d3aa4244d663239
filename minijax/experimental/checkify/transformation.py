"""The transformation `checkify`, and its rules: importing this fills their table.

Reference: ``jax.experimental.checkify.checkify``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp
from minijax.experimental.checkify.checking import (
    Checks,
    check_rules,
    run_checked,
    user_checks,
)
from minijax.experimental.checkify.checks import Error, ErrorCategory
from minijax.experimental.checkify.number_rules import NUMBER_RULES
from minijax.experimental.checkify.program_rules import PROGRAM_RULES
from minijax.forgetting.programs import stage
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.functions import tree_map

check_rules.update(PROGRAM_RULES | NUMBER_RULES)


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """Return a function that returns what fails in `f` as a value, and its result.

    Args:
      f: a function; what it is called with may be anything.
      errors: what is looked for: `user_checks` (calls of `check`), `nan_checks`,
        `div_checks`, `index_checks`, and unions of these sets, such as `all_checks`.

    Returns:
      A function with the arguments of `f` that returns a pair: an `Error`, and the
      result of `f`.

    Raises:
      NotImplementedError: if a program is called in a way that it does not know, and
        there is something to check.
      ValueError: for a `while_loop` whose condition is mapped by `vmap`.

    Reference: ``jax.experimental.checkify.checkify``.
    """

    def checked_fun(*args, **kwargs):
        call = FlatCall("checkify", lambda: f(*args, **kwargs), ())
        checks = Checks(frozenset(errors))
        flat = run_checked(checks, stage(call, []), [])
        failures = tree_map(jnp.asarray, checks.failures)
        return Error(failures, checks.causes), call.output(flat)

    return checked_fun
