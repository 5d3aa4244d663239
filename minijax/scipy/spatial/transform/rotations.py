"""Rotations of space as trees, and turning evenly from one to the next.

Reference: ``jax.scipy.spatial.transform``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax.core import Array
from minijax.randomness.normal import normal
from minijax.scipy.spatial.transform.quaternions import (
    composed,
    from_angles,
    from_matrix,
    from_parameters,
    from_vector,
    inverse,
    made_canonical,
    magnitude,
    normalized,
    to_angles,
    to_matrix,
    to_parameters,
    to_vector,
)
from minijax.typing import ArrayLike


class Rotation(NamedTuple):
    """One rotation of space, or an array of them.

    Attributes:
      quat: unit quaternions ``(x, y, z, w)``, of shape ``[..., 4]``.

    Reference: ``jax.scipy.spatial.transform.Rotation``.
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence["Rotation"]) -> "Rotation":
        """Join arrays of rotations to one."""
        return cls(jnp.concatenate([each.quat for each in rotations]))

    @classmethod
    def from_euler(
        cls, seq: str, angles: ArrayLike, degrees: bool = False
    ) -> "Rotation":
        """Turn about axes, one after the other.

        Args:
          seq: one to three axes: ``"xyz"`` where they stay, ``"XYZ"`` where they turn.
          angles: of shape ``[..., len(seq)]``, or a number for one axis.
          degrees: whether angles are in degrees.

        Raises:
          ValueError: for other axes, two neighbours that are the same, or another
            number of angles.
        """
        return cls(from_angles(seq, angles, degrees))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> "Rotation":
        """Make rotations of orthogonal matrices, of shape ``[..., 3, 3]``."""
        return cls(from_matrix(matrix))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> "Rotation":
        """Make rotations of modified Rodrigues parameters, of shape ``[..., 3]``."""
        return cls(from_parameters(mrp))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> "Rotation":
        """Make rotations of quaternions of any length but 0, ``[..., 4]``."""
        return cls(normalized(quat))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> "Rotation":
        """Make rotations of axes times angles, of shape ``[..., 3]``."""
        return cls(from_vector(rotvec, degrees))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> "Rotation":
        """Make one rotation that moves nothing, or an array of `num` of them."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> "Rotation":
        """Draw one rotation, or `num` of them; all are equally likely."""
        return cls(normalized(normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> "Rotation":  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __mul__(self, other: "Rotation") -> "Rotation":  # type: ignore[override]
        """Return the rotation `other`, followed by this one."""
        return Rotation(normalized(composed(self.quat, other.quat)))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Turn vectors, of shape ``[..., 3]``, or turn them back."""
        matrix = self.as_matrix()
        matrix = jnp.where(inverse, matrix.mT, matrix)
        return jnp.matvec(matrix, jnp.asarray(vectors))

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return angles of turns about three axes, of shape ``[..., 3]``.

        Where two axes fall together, the last angle is 0.

        Raises:
          ValueError: as `from_euler`, and unless there are three axes.
        """
        return to_angles(self.quat, seq, degrees)

    def as_matrix(self) -> Array:
        """Return orthogonal matrices, of shape ``[..., 3, 3]``."""
        return to_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters, of shape ``[..., 3]``."""
        return to_parameters(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return axes times angles, of shape ``[..., 3]``."""
        return to_vector(self.quat, degrees)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return quaternions, of shape ``[..., 4]``.

        Args:
          canonical: whether to take the one of two whose scalar is positive.
          scalar_first: whether the scalar is the first of the four numbers.
        """
        quat = made_canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> "Rotation":
        """Return the rotation back."""
        return Rotation(inverse(self.quat))

    def magnitude(self) -> Array:
        """Return the angle, between 0 and half a turn."""
        return magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> "Rotation":
        """Return the rotation that is nearest to all of a vector of them.

        Raises:
          ValueError: unless there is one weight for each.
        """
        count, dtype = len(self), self.quat.dtype
        given = jnp.ones(count, dtype) if weights is None else weights
        given = jnp.asarray(given, dtype)
        if given.shape != (count,):
            raise ValueError(
                "Expected `weights` to have number of values equal to number of "
                f"rotations, got shape {given.shape} and {count} rotations."
            )
        moments = (given * self.quat.T) @ self.quat
        return Rotation(jnp.linalg.eigh(moments).eigenvectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation, and no array of them."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Rotations at certain times, and evenly turning ones in between.

    Attributes:
      times: a vector of them.
      timedelta: how long it is to the next one.
      rotations: those at all times but the last.
      rotvecs: how far it is to the next one, as axes times angles.

    Reference: ``jax.scipy.spatial.transform.Slerp``.
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> "Slerp":
        """Make one.

        Args:
          times: a vector, each later than the one before.
          rotations: as many of them, at least 2.

        Raises:
          TypeError: if `rotations` is no `Rotation`.
          ValueError: if there are other numbers of them.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError(
                "`rotations` must be a sequence of at least 2 rotations."
            )
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps "
                f"given, got {len(rotations)} rotations and times of shape "
                f"{times.shape}."
            )
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), first, (first.inv() * second).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """Return the rotations at some times, or the one at one time.

        Raises:
          ValueError: if the times have more than one axis.
        """
        when = jnp.asarray(times, self.times.dtype)
        if when.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        each = jnp.atleast_1d(when)
        place = jnp.maximum(jnp.searchsorted(self.times, each) - 1, 0)
        part = (each - self.times[place]) / self.timedelta[place]
        further = Rotation.from_rotvec(self.rotvecs[place] * part[:, None])
        found = Rotation(self.rotations.quat[place]) * further
        return found if when.ndim else Rotation(found.quat[0])
