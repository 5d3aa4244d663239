"""Static and donated arguments, and the device on which their call runs.

References: ``static_argnums``, ``static_argnames`` of ``jax.jit``, the device
assignment of ``jax.jit``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

import inspect
import warnings
from typing import NamedTuple

from minijax.arrays.array import ArrayImpl
from minijax.arrays.devices import default_placement
from minijax.arrays.interchange import incommensurate_devices_error
from minijax.arrays.numerics import operator_index
from minijax.core import Tracer, tracer_methods
from minijax.diagnostics.tracebacks import api_boundary
from minijax.errors import ConcretizationTypeError, JaxRuntimeError
from minijax.jitting.compilation import (
    UNSPECIFIED,
    common_placement,
    device_constraints,
)
from minijax.rematerialization.caching import cache_key_of_value
from minijax.rematerialization.jaxpr_transforms import dce_all_outputs

# Static and donated arguments: what a user chose by number or by name.


class StaticKey:
    """A value in a key: equal to others of the same type, and equal in all its parts.

    Python's 1, 1.0 and True are equal and have one hash, and so are 0.0 and -0.0; as
    keys they differ. See `cache_key_of_value`.
    """

    __slots__ = "key", "value"

    def __init__(self, value):
        self.value, self.key = value, cache_key_of_value(value)

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        if self is other or not isinstance(other, StaticKey):
            return self is other
        try:
            return self.key == other.key
        except Exception as error:
            raise ValueError(
                "Static arguments should be comparable by ==, and these two of type "
                f"{type(self.value).__name__} are not: {type(error).__name__}: {error}"
            ) from error

    def __repr__(self):
        return repr(self.value)


def static_key_of(name, value):
    """Return the `StaticKey` of an argument.

    Raises:
      ValueError: if it has no hash.
    """
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported: the static argument "
            f"{name} is {value!r} of type {type(value).__name__}. Give a tuple instead "
            "of a list, or do not make this argument static."
        ) from error
    return StaticKey(value)


class ArgSelection(NamedTuple):
    """Some arguments of a function.

    Attributes:
      nums: tuple of positions; negative ones count from the last argument of a call.
      names: frozenset of names, for those that are given by keyword.
    """

    nums: tuple = ()
    names: frozenset = frozenset()

    def positions(self, count):
        """Return the chosen positions in a call with `count` positional arguments."""
        found = [num + count if num < 0 else num for num in self.nums]
        return sorted({num for num in found if 0 <= num < count})


BY_POSITION = inspect.Parameter.POSITIONAL_ONLY
IN_BOTH_WAYS = inspect.Parameter.POSITIONAL_OR_KEYWORD


def positional_parameter_names(parameters):
    """Return the names of the parameters that may be given by position."""
    return [p.name for p in _kinds(parameters, BY_POSITION, IN_BOTH_WAYS)]


def parameters_or_none(fun):
    """Return the list of a function's parameters, or None if they are unknown."""
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # some functions written in C
        return None


def resolve_argnums_and_argnames(kind, parameters, argnums, argnames):
    """Return the `ArgSelection`; of names and numbers each follows from the other.

    Args:
      kind: what they are chosen for, such as ``"static"``, for messages.
      parameters: list of the function's parameters, or None.
      argnums: an integer, a sequence of integers, or None.
      argnames: a string, a sequence of strings, or None.

    Raises:
      TypeError: if numbers are no integers or names no strings.
      ValueError: if the function has no such argument.
    """
    nums = argnums
    if nums is not None:
        nums = [operator_index(num, f"{kind}_argnums") for num in _several(argnums)]
    names = None if argnames is None else _strings(f"{kind}_argnames", argnames)
    if parameters is not None and nums is not None:
        nums = _check_nums(kind, parameters, nums)
    if parameters is not None and names is not None:
        _check_names(kind, parameters, names)
    both = _either_way(parameters or [])
    if nums is None:
        nums = [i for i, name in both if name in (names or ())]
    if names is None:
        names = [name for i, name in both if i in nums]
    return ArgSelection(tuple(nums), frozenset(names))


def _strings(option, argnames):
    names = _several(argnames)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{option} is a string or a sequence of strings, not {argnames!r}."
        )
    return names


def _several(one_or_more):
    """Return a list of what is given alone or in a sequence."""
    is_word = isinstance(one_or_more, str) or not hasattr(one_or_more, "__iter__")
    alone = is_word or getattr(one_or_more, "ndim", 1) == 0
    return [one_or_more] if alone else list(one_or_more)


def _kinds(parameters, *kinds):
    return [p for p in parameters if p.kind in kinds]


def _either_way(parameters):
    """Return pairs of position and name of what may be given in both ways."""
    places = enumerate(_kinds(parameters, BY_POSITION, IN_BOTH_WAYS))
    return [(i, p.name) for i, p in places if p.kind is IN_BOTH_WAYS]


def _check_nums(kind, parameters, nums):
    if _kinds(parameters, inspect.Parameter.VAR_POSITIONAL):
        return nums
    count = len(positional_parameter_names(parameters))
    for num in nums:
        if not -count <= num < count:
            raise ValueError(
                f"jit was given {kind}_argnums={tuple(nums)}, but the function has "
                f"{count} positional arguments."
            )
    return [num % count for num in nums]


def _check_names(kind, parameters, names):
    nameless = [p.name for p in _kinds(parameters, BY_POSITION) if p.name in names]
    if nameless:
        raise ValueError(
            f"jit was given {kind}_argnames={nameless}, which the function takes by "
            f"position only. Give their positions as {kind}_argnums."
        )
    if _kinds(parameters, inspect.Parameter.VAR_KEYWORD):
        return
    by_keyword = _kinds(parameters, IN_BOTH_WAYS, inspect.Parameter.KEYWORD_ONLY)
    known = [p.name for p in by_keyword]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"jit was given {kind}_argnames={unknown}, but the function has no such "
            f"arguments; those that it has are: {', '.join(known)}."
        )


class DeletedArray(ArrayImpl):
    """An array without its numbers; its shape and dtype are still known."""

    __slots__ = ()

    why = "Its method delete() was called."

    def _refuse(self, *args):
        raise RuntimeError(f"Array has been deleted with shape={self.aval}. {self.why}")

    _buffer = device = property(_refuse)


class DonatedArray(DeletedArray):
    """An array whose memory a program has taken."""

    __slots__ = ()

    why = "It was given to a program by donate_argnums or donate_argnames."


def delete_array(x):
    """Give up the numbers of an array, and their memory."""
    lose(x, DeletedArray)


def lose(x, kind):
    """Take the numbers of an array away; `kind` is its class from then on."""
    if not is_deleted(x):
        x._buffer = None
        x.__class__ = kind


def is_deleted(x):
    """Return whether the numbers of an array have been given up."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(f"{x!r} has no memory to give up.")
    return isinstance(x, DeletedArray)


def raise_if_donated(error, warm):
    """Raise another error if a call has met an array that was donated before.

    Args:
      error: what the call has raised.
      warm: whether the program has run before. It is the runtime that refuses the
        array then, in JAX, with an error of its own.
    """
    if warm and DonatedArray.why in str(error):
        words = "INVALID_ARGUMENT: Buffer has been deleted or donated."
        raise ValueError(f"{words} {error}") from None


tracer_methods.update(
    delete=api_boundary(delete_array), is_deleted=api_boundary(is_deleted)
)


def aliasable_inputs(closed, donated, keep_unused=False):
    """Return for each input of a program whether a result takes its memory.

    That is a result of the same shape and dtype; each takes that of one input.

    Args:
      closed: a `ClosedJaxpr`.
      donated: for each input whether it is donated.
      keep_unused: whether inputs that are not needed count as well.
    """
    _, needed = dce_all_outputs(closed)
    wanted, given = [(aval.shape, aval.dtype) for aval in closed.out_avals], []
    for flag, need, aval in zip(donated, needed, closed.in_avals, strict=True):
        kind = aval.shape, aval.dtype
        given.append(flag and (need or keep_unused) and kind in wanted)
        if given[-1]:
            wanted.remove(kind)
    return tuple(given)


def warn_unusable_donations(closed, donated, given):
    """Warn of inputs that are donated, and whose memory no result takes."""
    triples = zip(closed.in_avals, donated, given)
    useless = [str(aval) for aval, donate, taken in triples if donate and not taken]
    if useless:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(useless)}. No result "
            "has their shape and dtype.",
            stacklevel=4,
        )


def check_donated_once(given, operands):
    """Raise if an array is given up, and an operand of the same call besides."""
    ids = [id(x) for x in operands if isinstance(x, ArrayImpl)]
    for flag, x in zip(given, operands):
        if flag and ids.count(id(x)) > 1:
            raise JaxRuntimeError(
                f"An array of type {x.aval} is donated and is another argument of the "
                "same call: f(donate(a), a). Give a copy, or do not donate it."
            )


def donate_operands(given, operands, outs):
    """Delete the operands that are given up, and return the results.

    A result may be one of these operands; it gets a handle of its own.
    """
    arrays = [x for flag, x in zip(given, operands) if flag]
    arrays = [x for x in arrays if isinstance(x, ArrayImpl)]
    ids = {id(x) for x in arrays}
    outs = [
        ArrayImpl(out._buffer, out.aval, out.placement) if id(out) in ids else out
        for out in outs
    ]
    for x in arrays:
        lose(x, DonatedArray)
    return outs


def take_donated_buffers(given, operands):
    """Give operands up; return handles of their buffers that nobody else has.

    A program that fails, or is interrupted, has perhaps written over some of them.
    """
    arrays = [flag and isinstance(x, ArrayImpl) for flag, x in zip(given, operands)]
    ours = [
        ArrayImpl(x._buffer, x.aval, x.placement) if flag else x
        for flag, x in zip(arrays, operands)
    ]
    donate_operands(given, operands, [])
    return ours


# Where a program runs: on the device of the arguments that matter.


def execution_placement(params, places, labels=None):
    """Return the `Placement` of a program and its results.

    Args:
      params: of a call: ``jaxpr``, ``name``, perhaps ``device``, ``keep_unused``,
        ``in_shardings`` and ``out_shardings``.
      places: the placement of each operand, None for what has none.
      labels: what messages call the operands.

    Raises:
      ValueError: if operands that matter, results and functions inside are committed to
        different devices.
    """
    if params.get("device"):
        return params["device"].committed.mesh_placement
    closed, name = params["jaxpr"], params["name"]
    refuse_contradictions(params.get("in_shardings", ()), places, closed, labels)
    places = asked_for(params.get("in_shardings"), places)
    if not params.get("keep_unused"):
        places = [place if need else None for place, need in zip(places, needs(closed))]
    found = [place.mesh_placement for place in places if place and place.committed]
    committed = {place.devices: place for place in reversed(found)}
    if len(committed) > 1:
        raise incommensurate_devices_error(name, closed.in_avals, places, labels)
    wishes = [
        (argument_label(closed, name, places, labels), x) for x in committed.values()
    ]
    outs = asked_for(params.get("out_shardings"), [None] * len(closed.out_avals))
    wishes += [("explicit output sharding", place) for place in outs if place]
    return common_placement(wishes + device_constraints(closed)) or default_placement()


def refuse_contradictions(shardings, places, closed, labels):
    """Raise if an operand is committed to be cut in another way than was asked for."""
    for i, (asked, place) in enumerate(zip(shardings, places)):
        if asked is UNSPECIFIED or not place or not place.committed:
            continue
        aval, found = closed.in_avals[i], place.sharding
        several = len(place.devices) > 1 or len(asked.device_set) > 1
        if several and not asked.is_equivalent_to(found, aval.ndim):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective "
                f"arg. Got jit sharding: {asked},\narg sharding: {found} for arg "
                f"{labels[i] if labels else i} of type {aval.str_short()}. device_put "
                "cuts it anew, or leave the sharding out."
            )


def argument_label(closed, name, places, labels):
    """Return what messages say of the first operand that is committed."""
    i = next(i for i, place in enumerate(places) if place and place.committed)
    aval, label = closed.in_avals[i], labels[i] if labels else f"args[{i}]"
    shape = aval.update(weak_type=False)
    return f"argument {label} of {name} with shape {shape} and"


def asked_for(shardings, places):
    """Return the placements of operands or results, as their shardings overrule them.

    Args:
      shardings: one for each, some of them `UNSPECIFIED`; or None.
      places: a `Placement` or None for each.
    """
    if shardings is None:
        return places
    pairs = zip(shardings, places)
    return [old if new is UNSPECIFIED else new.placement for new, old in pairs]


def needs(closed):
    """Return for each input of a program whether a result needs it."""
    return dce_all_outputs(closed)[1]
