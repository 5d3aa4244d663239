"""Deferred operations: which of them may wait, and when two of them are the same."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.numerics import MANY
from minijax.arrays.placement import default_placement
from minijax.arrays.settings import config
from minijax.arrays.transfer import device_put_p
from minijax.callbacks import extension
from minijax.callbacks.primitives import pure_callback_p
from minijax.core import Array, RuleTable, impl_rules
from minijax.forgetting.programs import acts
from minijax.forgetting.remembering import traced_switches
from minijax.indexing.dynamic_slices import dynamic_slice_p
from minijax.jaxprs.jaxpr import JaxprEqn, Literal
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jitting.primitive import jit_p
from minijax.mesh_maps.map_rules import shard_map_p
from minijax.own_rules.function_calls import callee_rules
from minijax.spmd.constraints import sharding_constraint_p


def _pure(eqn):
    """Whether neither an equation nor a program inside it must happen at once."""
    if acts(eqn) or holds_arrays(eqn) or is_of_a_user(eqn.primitive):
        return False
    inner = [each for jaxpr in jaxprs_in_params(eqn.params) for each in jaxpr.eqns]
    return all(wait_rules[each.primitive](each) for each in inner)


def is_of_a_user(primitive):
    """Return whether the evaluation of a primitive is Python code of a user's."""
    module = getattr(impl_rules.get(primitive), "__module__", None) or "minijax."
    return module == extension.__name__ or not module.startswith("minijax.")


def holds_arrays(eqn):
    """Return whether a program inside an equation has picked up arrays itself.

    They are no operands, so a recording would not know of one that waits in it, nor
    keep the numbers of one that is deleted before the operation is computed.
    """
    consts = [c for x in eqn.params.values() for c in getattr(x, "consts", ())]
    return any(isinstance(each, Array) for each in consts)


# Rules ``rule(eqn)`` say whether an operation may be put off.
wait_rules = RuleTable("wait", default=_pure)
_at_once = pure_callback_p, device_put_p, shard_map_p, sharding_constraint_p
wait_rules.update(dict.fromkeys(_at_once, lambda eqn: False))

# What a call says besides its program: where it runs, and whose memory it takes.
CHOICES = "donated_invars", "in_shardings", "out_shardings", "backend", "device"


def _plain_call(eqn):
    return _pure(eqn) and not any(name in eqn.params for name in CHOICES)


wait_rules[jit_p] = _plain_call


def may_wait(primitive, params):
    """Return whether an operation may be put off."""
    return wait_rules[primitive](JaxprEqn([], [], primitive, params))


def callee_of(primitive, params):
    """Return what a call with rules of its own calls; None for a jitted function.

    Such a call is no operation to wait for: it is run, and its operations wait.
    """
    if primitive is jit_p or primitive not in callee_rules:
        return None
    return callee_rules[primitive](JaxprEqn([], [], primitive, params))


def bytes_of(number):
    """Return the bytes that a number has as an operand.

    Raises:
      OverflowError: if it is a Python integer that does not fit.
    """
    return np.asarray(number, typeof(number).dtype).tobytes()


def places_of(named, arrays, scalars):
    """Return where the operands of a step are found in a recording.

    Args:
      named: what stands for each in the key of the step.
      arrays, scalars: how many there were before it.
    """
    places: list = []
    for name in named:
        if type(name) is int:
            places.append(name)
        elif isinstance(name, ShapedArray):
            arrays += 1
            places.append(-arrays)
        else:
            places.append((scalars,))
            scalars += 1
    return places


def same_bits_in_python(closed, placement):
    """Return whether emitted Python does what operations do that are evaluated.

    Jitted functions and loops run as machine code there, and on other platforms all;
    sums of many rows are made in blocks.
    """
    if placement.device.platform != "cpu" or config.minijax_backend:
        return False
    inside = [eqn for eqn in closed.eqns if jaxprs_in_params(eqn.params)]
    return not inside and not any(map(sums_rows, closed.eqns))


def sums_rows(eqn):
    """Return whether an equation sums so many rows that it is done in blocks."""
    if eqn.primitive is not lax.reduce_sum_p:
        return False
    x = eqn.invars[0].aval
    return x.ndim > 1 and any(x.shape[axis] > MANY for axis in eqn.params["axes"])


def _as_dynamic(x, start_indices, limit_indices, strides):
    """Return a slice as an operation whose start is an operand; None if it cannot."""
    cuts = list(zip(start_indices, limit_indices))
    if strides is not None or len(cuts) != x.ndim:
        return None
    if not all(0 <= a <= b <= size for (a, b), size in zip(cuts, x.shape)):
        return None  # the slice refuses these, with a message of its own
    sizes = tuple([b - a for a, b in cuts])
    operands = x, *map(np.int32, start_indices)
    return dynamic_slice_p, operands, {"slice_sizes": sizes}


# Rules ``rule(*args, **params)`` return an operation that does the same, of which more
# is operands and less is parameters: its primitive, operands and parameters; or None.
loosen_rules: RuleTable = RuleTable("loosen", default=lambda *args, **params: None)
loosen_rules[lax.slice_p] = _as_dynamic


def firm(eqn):
    """Return an equation with as much in its parameters as there can be."""
    x, *starts = eqn.invars or [None]
    fixed = all(isinstance(start, Literal) for start in starts)
    if eqn.primitive is not dynamic_slice_p or not fixed:
        return eqn
    sizes = eqn.params["slice_sizes"]
    lasts = [size - part for size, part in zip(x.aval.shape, sizes)]
    begins = [min(max(int(s.val), 0), last) for s, last in zip(starts, lasts)]
    limits = [begin + part for begin, part in zip(begins, sizes)]
    params = {"start_indices": tuple(begins), "limit_indices": tuple(limits)}
    params["strides"] = None
    return eqn.replace(invars=[x], primitive=lax.slice_p, params=params)


def switches():
    """Return the switches on which results depend, a dictionary."""
    # The list is read here: modules that are imported later add to it.
    names = *traced_switches, "minijax_backend"
    return {name: getattr(config, name) for name in names}


def as_recorded(before, placement):
    """Return a context manager for switches of before.

    Args:
      before: what `switches` returned then.
      placement: where arrays that named no device were, then.
    """
    now = switches()
    changes = {name: before[name] for name in before if now[name] != before[name]}
    if placement.device is not default_placement().device:
        changes["jax_default_device"] = placement.device
    return config.override_all(changes)
