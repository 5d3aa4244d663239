# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Choose among the results of a batch (select), and refuse what cannot be undone."""

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.callbacks.debugging import debug_callback_p, debug_print_p
from minijax.forgetting.programs import effect_rules
from minijax.jaxprs.printing import jaxprs_in_params

PRINTING = {debug_callback_p, debug_print_p}


def choose(which, *cases):
    """Select among arrays by `which`, which has the first of their axes."""
    shape = typeof(cases[0]).shape
    if typeof(which).ndim != len(shape):
        which = lax.broadcast_in_dim(which, shape, range(typeof(which).ndim))
    return lax.select_n(which, *cases)


def refuse_io(what, *programs):
    """Raise if programs do more outside than print, where it could not be undone."""
    if any(map(does_io, programs)):
        raise NotImplementedError(
            f"Effects on the world (io_callback) are not supported in {what}: under "
            "vmap it runs for examples that did not ask for it. Take the effect out of "
            "it, or map over the examples with lax.map."
        )


def does_io(jaxpr):
    """Return whether a program has an effect besides printing what it computes."""
    return any(
        (eqn.primitive in effect_rules and eqn.primitive not in PRINTING)
        or any(map(does_io, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )
