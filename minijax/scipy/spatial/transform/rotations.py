"""Rotations of space: quaternions, other forms, and turning evenly between two.

Source: E. Bernardes and S. Viollet, *Quaternion to Euler angles conversion: a direct,
general and computationally efficient method*, PLoS ONE 17 (2022).

Reference: ``jax.scipy.spatial.transform``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.random import normal
from minijax.typing import ArrayLike

# Unit quaternions, scalar last, and other forms of rotations.

_SMALL_ANGLE = 1e-3  # angles for which the series is as good as the formula


def as_floats(x):
    """Return an array of as_floats."""
    [x] = promote_dtypes_inexact(jnp.asarray(x))
    return x


def _inner(a, b):
    return (a * b).sum(-1, keepdims=True)


def normalized(quat):
    """Return quaternions of length 1."""
    quat = as_floats(quat)
    return quat / jnp.sqrt(_inner(quat, quat))


def composed(p, q):
    """Return the quaternion of the rotation `q`, followed by `p`."""
    a, b = p[..., :3], q[..., :3]
    vector = p[..., 3:] * b + q[..., 3:] * a + jnp.cross(a, b)
    scalar = p[..., 3:] * q[..., 3:] - _inner(a, b)
    return jnp.concatenate([vector, scalar], -1)


@promoting
def quaternion_inverse(quat):
    """Return the quaternion of the rotation back."""
    return quat * jnp.array([-1, -1, -1, 1], quat.dtype)


def made_canonical(quat):
    """Return the one of two quaternions whose last number that is not 0 is positive.

    The order in which they are looked at is w, x, y, z.
    """
    first = jnp.roll(quat, 1, -1)
    place = jnp.argmax(abs(first) > 0, -1)[..., None]
    leading = jnp.take_along_axis(first, place, -1)
    return jnp.where(leading < 0, -quat, quat)


def to_matrix(quat):
    """Return the orthogonal matrix of a quaternion."""
    x, y, z, w = jnp.moveaxis(quat, -1, 0)
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def from_matrix(matrix):
    """Return the quaternion of an orthogonal matrix, from the largest of four."""
    m = jnp.moveaxis(as_floats(matrix), (-2, -1), (0, 1))
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    x, y, z = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    xy, xz, yz = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    squares = [1 - trace + 2 * m[i, i] for i in range(3)]
    rows = [
        [squares[0], xy, xz, x], [xy, squares[1], yz, y], [xz, yz, squares[2], z],
        [x, y, z, 1 + trace],
    ]  # fmt: skip
    quats = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    largest = jnp.argmax(jnp.stack([m[0, 0], m[1, 1], m[2, 2], trace], -1), -1)
    best = jnp.take_along_axis(quats, largest[..., None, None], -2)
    return normalized(best[..., 0, :])


def to_vector(quat, degrees):
    """Return axes times angles between 0 and half a turn."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    vector, square = quat[..., :3], _inner(quat[..., :3], quat[..., :3])
    small = square <= (_SMALL_ANGLE / 2) ** 2
    sine = jnp.sqrt(jnp.where(small, 1, square))  # a slope at 0 would be infinite
    angle = 2 * jnp.arctan2(sine, quat[..., 3:])
    scale = jnp.where(small, 2 + square / 3, angle / jnp.sin(angle / 2))
    vector = scale * vector
    return jnp.rad2deg(vector) if degrees else vector


def from_vector(vector, degrees):
    """Return the quaternion of an axis times an angle."""
    vector = as_floats(vector)
    vector = jnp.deg2rad(vector) if degrees else vector
    square = _inner(vector, vector)
    small = square <= _SMALL_ANGLE**2
    angle = jnp.sqrt(jnp.where(small, 1, square))
    series = 0.5 - square / 48 + square * square / 3840
    scale = jnp.where(small, series, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8 + square**2 / 384, jnp.cos(angle / 2))
    return jnp.concatenate([scale * vector, cosine], -1)


def to_parameters(quat):
    """Return modified Rodrigues parameters: the axis, times tan of a quarter angle."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    return quat[..., :3] / (1 + quat[..., 3:])


def from_parameters(parameters):
    """Return the quaternion of modified Rodrigues parameters."""
    parameters = as_floats(parameters)
    square = _inner(parameters, parameters)
    return jnp.concatenate([2 * parameters, 1 - square], -1) / (1 + square)


def magnitude(quat):
    """Return the angle of the rotation, between 0 and half a turn."""
    sine = jnp.sqrt(_inner(quat[..., :3], quat[..., :3]))[..., 0]
    return 2 * jnp.arctan2(sine, abs(quat[..., 3]))


def axes_of(seq, most=3):
    """Return the numbers of the axes in a text, and whether they turn along.

    Raises:
      ValueError: unless there are one to three, all small letters or all large, and
        neighbours differ.
    """
    if not 1 <= len(seq) <= most:
        raise ValueError(
            f"Expected axis specification to be a non-empty string of upto {most} "
            f"characters, got {seq}"
        )
    if {*seq} - {*"xyz"} and {*seq} - {*"XYZ"}:
        raise ValueError(
            "Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], "
            f"got {seq}"
        )
    if any(a == b for a, b in zip(seq, seq[1:])):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(axis) for axis in seq.lower()], seq.isupper()


def from_angles(seq, angles, degrees):
    """Return the quaternion of turns about axes, one after the other."""
    axes, intrinsic = axes_of(seq)
    angles = as_floats(jnp.atleast_1d(angles))
    if angles.shape[-1] != len(axes):
        raise ValueError(
            f"Expected an angle for each axis of {seq!r} along the last axis, got "
            f"angles of shape {angles.shape}."
        )
    half = (jnp.deg2rad(angles) if degrees else angles) / 2
    found = None
    for place, axis in enumerate(axes):
        vector = jnp.sin(half[..., place, None]) * jnp.eye(3, dtype=half.dtype)[axis]
        turn = jnp.concatenate([vector, jnp.cos(half[..., place, None])], -1)
        pair = (found, turn) if intrinsic else (turn, found)
        found = turn if found is None else composed(*pair)
    return found


def to_angles(quat, seq, degrees):
    """Return three angles of turns about axes; the first is 0 where one has no effect.

    Raises:
      ValueError: unless there are three axes.
    """
    if len(seq) != 3:
        raise ValueError(f"Expected 3 axes, got {seq}.")
    (i, j, k), intrinsic = axes_of(seq)
    if intrinsic:  # about fixed axes, in the opposite order
        i, k = k, i
    q, symmetric = jnp.moveaxis(quat, -1, 0), i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = q[3], q[i], q[j], q[k] * sign
    if not symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    first, third = total - difference, total + difference
    none, half = abs(middle) <= 1e-7, abs(middle - math.pi) <= 1e-7
    free, outer = none | half, 2 * difference if intrinsic else -2 * difference
    alone = jnp.where(none, 2 * total, outer)
    ends = [first, third] if not intrinsic else [third, first]
    ends = [jnp.where(free, alone, ends[0]), jnp.where(free, 0, ends[1])]
    if not symmetric:
        place = 0 if intrinsic else 1
        ends[place], middle = ends[place] * sign, middle - math.pi / 2
    angles = jnp.stack([ends[0], middle, ends[1]], -1)
    angles = (angles + np.pi) % (2 * np.pi) - np.pi
    return jnp.rad2deg(angles) if degrees else angles


# Rotations of space as trees, and turning evenly from one to the next.


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
        return Rotation(quaternion_inverse(self.quat))

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
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, rotations.quat.dtype)
        if times.shape != (len(rotations),):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps "
                f"given, got {len(rotations)} rotations and times of shape "
                f"{times.shape}."
            )
        first, second = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), first, (first.inv() * second).as_rotvec())

    @promoting
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
