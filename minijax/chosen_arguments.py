# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Arguments that a user chose by number or by name, such as the static ones.

Reference: ``static_argnums`` and ``static_argnames`` of ``jax.jit``.
"""

import inspect
import operator
from typing import NamedTuple


class Chosen(NamedTuple):
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


def positional(parameters):
    """Return the names of the parameters that may be given by position."""
    return [p.name for p in _kinds(parameters, BY_POSITION, IN_BOTH_WAYS)]


def signature_of(fun):
    """Return the list of a function's parameters, or None if nobody knows them."""
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # some functions written in C
        return None


def chosen(kind, parameters, argnums, argnames):
    """Return the `Chosen` arguments; of names and numbers each follows from the other.

    Args:
      kind: what they are chosen for, such as ``"static"``, for messages.
      parameters: list of the function's parameters, or None.
      argnums: an integer, a sequence of integers, or None.
      argnames: a string, a sequence of strings, or None.

    Raises:
      TypeError: if numbers are no integers or names no strings.
      ValueError: if the function has no such argument.
    """
    nums = None if argnums is None else _integers(f"{kind}_argnums", argnums)
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
    return Chosen(tuple(nums), frozenset(names))


def _integers(option, argnums):
    try:
        return [operator.index(num) for num in _several(argnums)]
    except TypeError:
        raise TypeError(
            f"{option} is an integer or a sequence of integers, not {argnums!r}."
        ) from None


def _strings(option, argnames):
    names = _several(argnames)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{option} is a string or a sequence of strings, not {argnames!r}."
        )
    return names


def _several(one_or_more):
    """Return a list of what is given alone or in a sequence."""
    alone = isinstance(one_or_more, str) or not hasattr(one_or_more, "__iter__")
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
    count = len(positional(parameters))
    for num in nums:
        if not -count <= num < count:
            raise ValueError(
                f"jit was given {kind}_argnums={tuple(nums)}, but the function has "
                f"{count} positional arguments."
            )
    return [num % count for num in nums]


def _check_names(kind, parameters, names):
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
