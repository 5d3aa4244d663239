# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
"""How arrays look from outside: as text, to NumPy and DLPack, and in a pickle.

Reference: ``jax.Array``.
"""

import numpy as np

from minijax.arrays.capsules import lend
from minijax.arrays.dtypes import EXTENDED, name_of, short_name
from minijax.arrays.placement import platforms
from minijax.core import Array


class Record:
    """What is compared, hashed, written and pickled by its three parts.

    They are its `shape`, `dtype` and `weak_type`: an abstract value.
    """

    __slots__ = ()

    def _key(self):
        return self.shape, self.dtype, self.weak_type

    def __eq__(self, other):
        return isinstance(other, Record) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __reduce__(self):
        return type(self), self._key()

    def update(self, shape=None, dtype=None, weak_type=None):
        """Return a copy with some of its parts replaced."""
        kind: type = type(self)
        return kind(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    def str_short(self):
        """Return the spelling of jaxprs, such as ``f32[3,4]``."""
        return f"{short_name(self.dtype)}[{','.join(map(str, self.shape))}]"

    def __str__(self):
        sizes = ",".join(map(str, self.shape))
        return f"{'~' * self.weak_type}{name_of(self.dtype)}[{sizes}]"

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({str(self).lstrip('~')}{weak})"


def promised(x):
    """Return the array that `x` promises, or anything else as it is."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def refuse_promise(x):
    """Raise if `x` only promises an array: its method is called by functions of NumPy.

    Raises:
      ValueError: if it has a method ``__jax_array__``.
    """
    if hasattr(x, "__jax_array__"):
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer "
            "supported. To avoid this error, either explicitly convert your object "
            "using jax.numpy.array(), or register your object as a pytree."
        )


def rule_of_class(rules, x):
    """Return the entry of a table for the class of `x`, or the nearest base class.

    Raises:
      TypeError: if there is none, so that `x` is no operand.
      ValueError: if `x` only promises an array.
    """
    for kind in type(x).__mro__:
        if kind in rules:
            return rules[kind]
    refuse_promise(x)
    raise TypeError(
        f"{x!r} of type {type(x)} is not a valid array type: "
        "an array, a NumPy array or a number is expected."
    )


NO_NUMBERS = (
    "An array of dtype {} cannot be converted to a NumPy array: its elements are no "
    "numbers. minijax.random.key_data(array) returns the words that they are made of."
)


class Interchange(Array):
    """What others may have of an array: its numbers, and no means to change them."""

    __slots__ = ("__weakref__",)

    def __repr__(self):
        return repr_of_array(self._buffer, self.aval)

    def __str__(self):
        return repr(self) if self.aval.dtype in EXTENDED else str(self._buffer)

    def __format__(self, spec):
        if self.aval.dtype in EXTENDED:
            return format(str(self), spec)
        return format(self._buffer[()] if self.aval.ndim == 0 else self._buffer, spec)

    def __array__(self, dtype=None, copy=None):
        if self.aval.dtype in EXTENDED:
            raise TypeError(NO_NUMBERS.format(name_of(self.aval.dtype)))
        return np.array(self._buffer.view(), dtype=dtype, copy=copy)

    def __dlpack__(self, *, max_version=None, **kwargs):
        if max_version is None or max_version < (1, 0):  # cannot say "read-only"
            return lend(self._buffer.copy(), **kwargs)
        return lend(self._buffer, max_version=max_version, **kwargs)

    def __dlpack_device__(self):
        return self._buffer.__dlpack_device__()

    def __copy__(self):
        kind: type = type(self)
        return kind(self._buffer, self.aval, self.device)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        return type(self), (self._buffer.copy(), self.aval)

    def devices(self):
        """Return the set of devices that hold the array."""
        return {self.device}

    def block_until_ready(self):
        """Return the array when its numbers are there."""
        return self


def repr_of_array(buffer, aval):
    """Return ``Array([1., 2.], dtype=float32)``, as JAX writes it."""
    if aval.dtype in EXTENDED:
        words = buffer[aval.dtype.names[0]]
        return f"Array({aval.shape}, dtype={name_of(aval.dtype)}) overlaying:\n{words}"
    width = np.get_printoptions()["linewidth"]
    weak = ", weak_type=True" if aval.weak_type else ""
    dtype = f"dtype={aval.dtype.name}{weak})"
    values = f"[], shape={aval.shape}"
    if aval.size:
        values = np.array2string(
            buffer, width, separator=", ", prefix="Array(", suffix=","
        )
    last_line = len(values) - values.rfind("\n")  # JAX counts no "Array(" here
    gap = " " if last_line + len(dtype) + 2 <= width else " " * len("Array(")
    return f"Array({values},{gap}{dtype}"


def device_of(args):
    """Return the device of the first array among `args`, or the CPU."""
    for arg in args:
        if isinstance(arg, Interchange):
            return arg.device
    return platforms["cpu"][0]
