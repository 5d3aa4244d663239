"""Choose among the results of a batch (select), and check what a user chooses by."""

# Made from chapters/15_branches_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import name_of
from minijax.callbacks.debugging import debug_callback_p, debug_print_p
from minijax.core import Tracer
from minijax.forgetting.programs import effect_rules
from minijax.jaxprs.printing import jaxprs_in_params

PRINTING: set = {debug_callback_p, debug_print_p}


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


def as_predicate(pred):
    """Return a predicate as a boolean scalar."""
    if pred is None or callable(pred) or isinstance(pred, Sequence):
        raise TypeError(f"cond: Pred must be a scalar, got {pred!r}.")
    aval = typeof(pred)
    if aval.shape:
        raise TypeError(
            f"cond: Pred must be a scalar, got one of shape {aval.shape}. To "
            "choose element by element there is jnp.where; to ask whether all or any "
            "hold, jnp.all and jnp.any."
        )
    if aval.dtype.kind not in "biuf":
        name = name_of(aval.dtype)
        raise TypeError(f"cond: no predicate is of dtype {name}: compare it.")
    return pred if aval.dtype.kind == "b" else pred != 0


def is_concrete(x):
    """Return whether Python can ask `x` for its value."""
    return not isinstance(x, Tracer) or x.concrete() is not None


NOTHING = object()


def both_functions(true_fun, false_fun, operands, operand):
    """Return both functions and all operands; accept the two older ways of calling."""
    if not (callable(true_fun) and callable(false_fun)):
        return _of_pairs(true_fun, false_fun, *operands)
    return true_fun, false_fun, all_operands("cond", operands, operand)


def _of_pairs(x, true_fun, *more):
    """Accept ``cond(pred, x, true_fun, y, false_fun)``, as JAX does."""
    if not (callable(true_fun) and len(more) == 2 and callable(more[1])):
        raise TypeError("cond: true_fun and false_fun must be callable.")
    y, false_fun = more
    return lambda x, y: true_fun(x), lambda x, y: false_fun(y), (x, y)


def all_operands(name, operands, operand):
    """Return the operands, or the only one that was given by name."""
    if operand is NOTHING:
        return operands
    if operands:
        raise TypeError(f"{name}: pass operands by position or `operand`, not both.")
    return (operand,)
