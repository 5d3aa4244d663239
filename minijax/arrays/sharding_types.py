"""Shardings: which part of an array is where, and along which axes values vary.

Reference: ``jax.sharding``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._registry import Registry

# By type of what says a part of a sharding: functions of the option and of it that
# return the `Sharding`.
completions: dict = Registry()


class Sharding:
    """Where the parts of an array lie.

    Attributes:
      device_set: the set of all devices that have a part.
      placement: that of the arrays which are put there.

    Reference: ``jax.sharding.Sharding``.
    """

    addressable_devices = property(
        lambda self: {device for device in self.device_set if device.is_local}
    )
    has_addressable_devices = property(lambda self: bool(self.addressable_devices))
    is_fully_addressable = property(
        lambda self: all(device.is_local for device in self.device_set)
    )
    num_devices = property(lambda self: len(self.device_set))

    def is_equivalent_to(self, other, ndim):
        """Return whether another sharding places arrays of `ndim` axes the same way."""
        return self == other

    def addressable_devices_indices_map(self, global_shape):
        """Return `devices_indices_map` of the devices of this process."""
        indices = self.devices_indices_map(global_shape)
        return {device: indices[device] for device in indices if device.is_local}


class ManualAxisType:
    """Along which axes of a mesh the devices have different values, or parts of a sum.

    There is one object for each; they are compared by identity.

    Args:
      varying: set of names of axes along which the values differ.
      unreduced: set of names of axes along which the values are still to be summed.
      reduced: set of names of axes along which cotangents will be.

    Raises:
      ValueError: if an axis is varying and something else besides.

    Reference: ``jax.sharding.ManualAxisType``.
    """

    __slots__ = ("reduced", "unreduced", "varying")
    _parts = "varying", "unreduced", "reduced"
    _known: dict = {}

    def __new__(cls, *, varying=(), unreduced=(), reduced=()):
        parts = tuple(map(frozenset, (varying, unreduced, reduced)))
        for name, axes in (("unreduced", parts[1]), ("reduced", parts[2])):
            if parts[0] & axes:
                raise ValueError(
                    f"varying and {name} cannot have common mesh axes. Got "
                    f"varying={parts[0]} and {name}={axes}"
                )
        self = cls._known.setdefault(parts, object.__new__(cls))
        self.varying, self.unreduced, self.reduced = parts
        return self

    def __repr__(self):
        parts = [f"{name}={getattr(self, name)}" for name in self._parts]
        return f"ManualAxisType({', '.join(parts)})"

    def __str__(self):
        sets = [("V", self.varying), ("U", self.unreduced), ("R", self.reduced)]
        said = [f"{letter}:{_names_of(axes)}" for letter, axes in sets if axes]
        return f"{{{', '.join(said)}}}" if said else ""

    def __reduce__(self):
        return _manual_axes, (self.varying, self.unreduced, self.reduced)

    def update(self, **changes):
        """Return the record with other sets of axes, by their names."""
        return ManualAxisType(
            **{name: getattr(self, name) for name in self._parts} | changes
        )

    def without(self, axes):
        """Return the record of values that are the same along some more axes."""
        return self.update(varying=self.varying - {*axes})

    @property
    def empty(self):
        """Whether the values are the same on all devices."""
        return self is NO_MANUAL_AXES


def _names_of(axes):
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


def _manual_axes(*parts):
    return ManualAxisType(**dict(zip(ManualAxisType._parts, parts)))


NO_MANUAL_AXES = ManualAxisType()
