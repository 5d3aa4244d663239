"""How arrays look from outside: as text, to NumPy and DLPack, and in a pickle.

By DLPack's capsules array libraries lend each other memory. NumPy makes and reads them,
but for bfloat16: to NumPy it is integers of 16 bits; the code of the type is rewritten.

Reference: ``jax.Array``; ``dlpack.h``, https://dmlc.github.io/dlpack/latest/c_api.html.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.devices import (
    NO_MANUAL_AXES,
    Device,
    check_transfer,
    default_placement,
)
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    canonicalize_dtype,
    dtype_name,
    numpy_dtype_of,
    short_dtype_name,
    tangent_dtype_of_primal,
)
from minijax.core import Array, tracer_methods
from minijax.errors import out_of_memory_error

DLPACK_UINT16, BFLOAT = (
    (1, 16, 1),
    (4, 16, 1),
)  # the kind of a number, its bits, how many
# Where a capsule of each name describes its numbers.
DLPACK_DTYPE_OFFSETS = {b"dltensor": 20, b"dltensor_versioned": 52}

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Numbers(ctypes.Structure):
    """What a capsule says of the type of its numbers."""

    _fields_ = (
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    )  # fmt: skip


def retype(capsule, before, after):
    """Rewrite the type of a capsule's numbers; return whether it was `before`."""
    name = _name_of(capsule)
    numbers = Numbers.from_address(
        _pointer_of(capsule, name) + DLPACK_DTYPE_OFFSETS[name]
    )
    found = (numbers.code, numbers.bits, numbers.lanes) == before
    if found:
        numbers.code, numbers.bits, numbers.lanes = after
    return found


def lend(buffer, **kwargs):
    """Return the numbers of an array in a capsule, for a device that can read them."""
    asked = kwargs.get("dl_device")
    if asked and isinstance(buffer, np.ndarray) and asked != buffer.__dlpack_device__():
        raise BufferError(f"numbers of the host are not lent to the device {asked}")
    if buffer.dtype.name != "bfloat16":
        return buffer.__dlpack__(**kwargs)
    capsule = buffer.view(np.uint16).__dlpack__(**kwargs)
    retype(capsule, DLPACK_UINT16, BFLOAT)
    return capsule


class _Lender:
    """An object of another library, with numbers of types that NumPy knows."""

    def __init__(self, x):
        self.x, self.retyped = x, False

    def __dlpack__(self, **kwargs):
        capsule = self.x.__dlpack__(**kwargs)
        self.retyped = retype(capsule, BFLOAT, DLPACK_UINT16)
        return capsule

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def numpy_view(x):
    """Return the numbers of an object as a NumPy array that shares its memory."""
    lender = _Lender(x)
    array = np.from_dlpack(lender)
    return array.view("bfloat16") if lender.retyped else array


tracer_methods["shape"] = property(lambda x: x.aval.shape)
tracer_methods["dtype"] = property(lambda x: x.aval.dtype)
tracer_methods["ndim"] = property(lambda x: x.aval.ndim)
tracer_methods["size"] = property(lambda x: x.aval.size)
tracer_methods["itemsize"] = property(lambda x: x.aval.dtype.itemsize)
tracer_methods["nbytes"] = property(lambda x: x.aval.size * x.aval.dtype.itemsize)
tracer_methods["weak_type"] = property(lambda x: x.aval.weak_type)


class AbstractValue:
    """What is compared, hashed, written and pickled by its four parts.

    Args:
      shape, dtype, weak_type: of an abstract value.
      sharding, memory_space: accepted, since JAX's types have them; a type here says
        nothing of the place of an array.
      manual_axis_type: a `ManualAxisType`, for programs on many devices.
    """

    __slots__ = ("dtype", "manual_axis_type", "shape", "weak_type")

    def __init__(
        self,
        shape,
        dtype,
        weak_type=False,
        *,
        sharding=None,
        manual_axis_type=NO_MANUAL_AXES,
        memory_space=None,
    ):
        self.shape, self.dtype = tuple(shape), numpy_dtype_of(dtype)
        self.weak_type, self.manual_axis_type = weak_type, manual_axis_type

    mat = property(lambda self: self.manual_axis_type)

    def _key(self):
        return self.shape, self.dtype, self.weak_type, self.manual_axis_type

    def __eq__(self, other):
        return isinstance(other, AbstractValue) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __reduce__(self):
        *parts, axes = self._key()
        kind: type = type(self)
        return partial(kind, manual_axis_type=axes), tuple(parts)

    def update(
        self,
        shape=None,
        dtype=None,
        weak_type=None,
        sharding=None,
        manual_axis_type=None,
        memory_space=None,
    ):
        """Return a copy with some of its parts replaced."""
        kind: type = type(self)
        axes = self.manual_axis_type if manual_axis_type is None else manual_axis_type
        return kind(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            manual_axis_type=axes,
        )

    def to_tangent_aval(self):
        """Return the type of tangents: floats have their own, the rest float0."""
        return self.update(dtype=tangent_dtype_of_primal(self.dtype))

    def str_short(self, short_dtypes=True, mesh_axis_types=False):
        """Return the spelling of jaxprs, such as ``f32[3,4]``, or ``float32[3,4]``."""
        if not short_dtypes:
            return str(self).lstrip("~")
        sizes = ",".join(map(str, self.shape))
        return f"{short_dtype_name(self.dtype)}[{sizes}]{self.manual_axis_type}"

    def __str__(self):
        sizes = ",".join(map(str, self.shape))
        weak, axes = "~" * self.weak_type, self.manual_axis_type
        return f"{weak}{dtype_name(self.dtype)}[{sizes}]{axes}"

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({str(self).lstrip('~')}{weak})"


def promised(x: Any) -> Any:
    """Return the array that `x` promises, or anything else as it is."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def raise_if_promise(x):
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


def check_room(what: str, *shape: int) -> None:
    """Raise what `out_of_memory_error` returns if there is no room for so many floats.

    Args:
      what: what the numbers are for.
      shape: how many there are along each axis.

    Raises:
      JaxRuntimeError: if there is no room.
    """
    dtype = np.dtype(float)
    try:
        np.empty(shape, dtype)
    except (MemoryError, ValueError) as error:
        raise out_of_memory_error(what, shape, dtype) from error


NO_NUMBERS = (
    "An array of dtype {} cannot be converted to a NumPy array: its elements are no "
    "numbers. minijax.random.key_data(array) returns the words that they are made of."
)


def make_read_only_array(array, placement):
    """Make an array's buffer read-only, where it lies: if None, the default device."""
    array.placement = placement or default_placement()
    array.placement.device.seal(array._buffer)


class BufferInterop(Array):
    """What others may have of an array: its numbers, and no means to change them."""

    __slots__ = ("__weakref__",)

    def _numbers(self):
        device = self.placement.device
        if device.array_module is not np:
            check_transfer("device-to-host", self, device)
        return device.fetch(self._buffer)

    def _is_here(self):
        return self.is_fully_addressable or self.is_fully_replicated

    def __repr__(self):
        if not self._is_here():
            return (
                f"Array(shape={self.aval.shape}, dtype={dtype_name(self.aval.dtype)})"
            )
        return repr_of_array(self._numbers(), self.aval)

    def __str__(self):
        plain = self.aval.dtype not in EXTENDED_DTYPES and self._is_here()
        return str(self._numbers()) if plain else repr(self)

    def __format__(self, spec):
        if self.aval.dtype in EXTENDED_DTYPES:
            return format(str(self), spec)
        numbers = self._numbers()
        return format(numbers[()] if self.aval.ndim == 0 else numbers, spec)

    def __array__(self, dtype=None, copy=None):
        if self.aval.dtype in EXTENDED_DTYPES:
            raise TypeError(NO_NUMBERS.format(dtype_name(self.aval.dtype)))
        return np.array(self._numbers().view(), dtype=dtype, copy=copy)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        kwargs = {"stream": stream, "dl_device": dl_device, "copy": copy}
        numbers = self.placement.device.lent(self._buffer)
        if max_version is None or max_version < (1, 0):  # cannot say "read-only"
            return lend(numbers.copy(), **kwargs)
        return lend(numbers, max_version=max_version, **kwargs)

    def __dlpack_device__(self):
        return self.placement.device.lent(self._buffer).__dlpack_device__()

    def __copy__(self):
        kind: type = type(self)
        return kind(self._buffer, self.aval, self.placement)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        return _on_default_device, (type(self), self._numbers().copy(), self.aval)

    device = property(lambda self: self.placement.device.name_of_place)
    sharding = property(lambda self: self.placement.sharding)
    committed = property(lambda self: self.placement.committed)
    is_fully_addressable = property(lambda self: self.sharding.is_fully_addressable)
    is_fully_replicated = property(lambda self: self.sharding.is_fully_replicated)

    def devices(self):
        """Return the set of devices that hold the array."""
        self._check_not_deleted()
        return self.sharding.device_set

    def block_until_ready(self):
        """Return the array when its numbers are there."""
        self.placement.device.wait(self._buffer)
        return self

    def is_ready(self):
        """Return whether the numbers are there already."""
        return self.placement.device.is_ready(self._buffer)

    def copy_to_host_async(self):
        """Begin to copy the numbers to the host, where they may be already."""
        self._check_not_deleted()

    def platform(self):
        """Return the name of the platform of the device."""
        self._check_not_deleted()
        return self.placement.devices[0].platform

    def on_device_size_in_bytes(self):
        """Return how many bytes the numbers take."""
        self._check_not_deleted()
        return self.nbytes

    @property
    def addressable_shards(self):
        """The list of the parts, a `Shard` for each device of this process."""
        return [shard for shard in self.global_shards if shard.device.is_local]

    @property
    def global_shards(self):
        """The list of the parts; of those of other processes, `data` is None."""
        self._check_not_deleted()
        return [Shard(*part) for part in self.sharding.shards(self)]

    def addressable_data(self, index):
        """Return the part of the device with this number, an array."""
        return self.addressable_shards[index].data

    def _check_not_deleted(self):
        return self._buffer  # which raises if there is none any more


def _on_default_device(kind, numbers, aval):
    """Return an array of these numbers: what a pickled array becomes."""
    placement, dtype = default_placement(), canonicalize_dtype(aval.dtype)
    if dtype != aval.dtype:  # 64 bits, and they are off now
        numbers, aval = numbers.astype(dtype), aval.update(dtype=dtype)
    return kind(placement.device.put(numbers), aval, placement)


def repr_of_array(buffer, aval):
    """Return ``Array([1., 2.], dtype=float32)``, as JAX writes it."""
    if aval.dtype in EXTENDED_DTYPES:
        words = buffer[buffer.dtype.names[0]]
        return (
            f"Array({aval.shape}, dtype={dtype_name(aval.dtype)}) overlaying:\n{words}"
        )
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


class Shard(NamedTuple):
    """A part of an array, on one device.

    Attributes:
      device: the `Device`.
      index: the slices of the whole array that it is.
      replica_id: the number of this copy, of all that are equal.
      data: the part, an array on that device.

    Reference: ``jax.Shard``.
    """

    device: Device
    index: tuple
    replica_id: int
    data: Any

    def __repr__(self):
        return (
            f"Shard(device={self.device!r}, index={self.index}, "
            f"replica_id={self.replica_id}, data={self.data})"
        )


def placement_of(args, name, labels=None):
    """Return where an operation on `args` happens, and where its results are.

    Args:
      args: operands: arrays, and what has no place, such as numbers.
      name: of the operation, for messages.
      labels: what messages call the operands; by default ``args[0]`` and so on.

    Raises:
      ValueError: if two of them are committed to different devices.
    """
    found = None
    for arg in args:
        if isinstance(arg, BufferInterop):
            place = arg.placement.mesh_placement
            if place.committed and place is not found:
                if found is None:
                    found = place
                elif found.devices != place.devices:
                    raise incommensurate_devices_error(
                        name, args, [placement_or_none(x) for x in args], labels
                    )
    return found or default_placement()


def placement_or_none(x):
    """Return the placement of an array, and None for what has none."""
    return x.placement if isinstance(x, BufferInterop) else None


def incommensurate_devices_error(name, avals, places, labels=None):
    """Return the error that operands are committed to different devices.

    Args:
      name: of the operation.
      avals: operands, or their abstract values.
      places: the placement of each, or None.
      labels: what they are called; by default ``args[0]`` and so on.
    """
    held = [i for i, place in enumerate(places) if place and place.committed]
    other = next(i for i in held if places[i].devices != places[held[0]].devices)
    named = {i: labels[i] if labels else f"args[{i}]" for i in (held[0], other)}
    found = " and ".join(
        f"argument {label} of {name} with shape {dtype_name(avals[i].dtype)}"
        f"[{','.join(map(str, avals[i].shape))}] and with {device_ids(places[i])}"
        for i, label in named.items()
    )
    here, there = named.values()
    return ValueError(
        f"Received incompatible devices for jitted computation. Got {found}. Put them "
        f"on one device, for example by minijax.device_put({there}, {here}.device)."
    )


def device_ids(placement):
    """Return the numbers of the devices of a placement, as messages have them."""
    ids = sorted(device.id for device in placement.devices)
    return f"device ids {ids} on platform {placement.devices[0].platform.upper()}"
