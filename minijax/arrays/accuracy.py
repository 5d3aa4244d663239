"""How exact the result of an elementary function is to be.

References: ``jax.lax.AccuracyMode``, ``jax.lax.Tolerance``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import enum


class AccuracyMode(enum.Enum):
    """How exact an elementary function is asked to be; here, there is one of each.

    Reference: ``jax.lax.AccuracyMode``.
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """What error a result may have: at most two of the three may be given.

    Args:
      atol: absolute error.
      rtol: relative error.
      ulps: distance from the exact result, in neighbouring floats.

    Raises:
      ValueError: if one is negative, or all are zero.

    Reference: ``jax.lax.Tolerance``.
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if min(atol, rtol, ulps) < 0:
            raise ValueError("Tolerances must be non-negative.")
        if max(atol, rtol, ulps) == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


def check_accuracy(accuracy):
    """Raise unless `accuracy` is None or of a class that says how exact a result is.

    It changes nothing: of each elementary function there is one version, and tests
    bound its error in ulps.
    """
    if not isinstance(accuracy, AccuracyMode | Tolerance | None):
        raise NotImplementedError(f"Accuracy {accuracy} not supported")
