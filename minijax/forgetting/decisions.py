"""What a rematerialisation policy answers, and what a call says of each operand.

Reference: ``jax.ad_checkpoint.Saveable``, ``Recompute`` and ``Offloadable``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

from minijax.forgetting.programs import partition


class _Word:
    """An answer that is as good as a bool."""

    def __init__(self, name, kept):
        self.name, self.kept = name, kept

    def __bool__(self):
        return self.kept

    def __repr__(self):
        return self.name


Saveable, Recompute = _Word("Saveable", True), _Word("Recompute", False)


class Offloadable(NamedTuple):
    """The answer that a value is to be moved from one memory to another.

    Reference: ``jax.ad_checkpoint.Offloadable``.
    """

    src: Any
    dst: Any


def is_kept(answer):
    """Return what a policy has answered, as a bool.

    Raises:
      NotImplementedError: if it is `Offloadable`.
      TypeError: if it is anything else.
    """
    if isinstance(answer, (bool, _Word)):
        return bool(answer)
    if isinstance(answer, Offloadable):
        raise NotImplementedError(
            f"A policy has answered {answer}, and arrays have one memory here. Answer "
            "ad_checkpoint.Saveable, or Recompute."
        )
    raise TypeError(
        "Value returned by a remat policy should be a bool or ad_checkpoint.Recompute, "
        f"ad_checkpoint.Saveable or ad_checkpoint.Offloadable(...). Got {answer} of "
        f"type {type(answer)}."
    )


def flags_per_operand(params, choose):
    """Return parameters with flags for other operands; new ones are protected."""
    flags = params["prevent_cse"]
    if isinstance(flags, bool):
        return params
    found = [True if flag is None else flag for flag in choose(flags)]
    return params | {"prevent_cse": tuple(found)}


def flags_with_tangents(params, choose):
    """Return parameters with flags for all operands, and for some of their tangents."""

    def longer(flags):
        return [*flags, *[None] * (len(choose(flags)) - len(flags))]

    return flags_per_operand(params, longer)


def flags_of_split(params, parts, on_tape):
    """Return parameters with flags for the residuals of a `Split`, and for the tape."""

    def chosen(flags):
        known, later = partition(on_tape, flags)
        known = dict(enumerate(known))
        return [*map(known.get, parts.sources), *later]

    return flags_per_operand(params, chosen)
