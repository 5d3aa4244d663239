"""Data types: which there are, and the switches that say which are in force.

A Python number has a kind but no width: `PYTHON_TYPES` says how wide it is at its
widest.

References: ``jax.config``, ``jax.dtypes``.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/02_arrays_rest.md: _tell_of_x64 (e7ba458f).

import os
import sys
import warnings
import weakref
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any

import numpy as np

from minijax._lazy import run_registrations
from minijax._registry import Registry
from minijax.context_values import ContextValue, context_variable, current_context_value

# The switches of the package.


class Config:
    """Named switches: each is an attribute, and may differ in a thread for a while.

    Attributes:
      state: two dictionaries, of the process and of this thread, which are replaced
        and never changed: as long as they are the same two, so are all values.
      values: the value of each switch in this thread, by its name.
      x64_enabled: whether 64-bit types exist.

    Reference: ``jax.config``.
    """

    __slots__ = (
        "_accepts", "_chosen", "_followers", "_held", "_overrides", "_told", "_unsure",
        "_values",
    )  # fmt: skip

    def __init__(self):
        self._accepts, self._values, self._chosen = {}, {}, {}
        self._overrides = context_variable("overrides", {})
        self._told, self._held, self._unsure, self._followers = {}, [], set(), {}

    state = property(lambda self: (self._values, self._here()))
    x64_enabled = property(lambda self: self.jax_enable_x64)

    @property
    def values(self):
        """The value of each switch in this thread, by its name."""
        overrides = self._here()
        self._settle()
        return {**self._values, **overrides}

    def define(self, name, default, accepts=bool, told=None, followers=()):
        """Add a switch.

        Args:
          name: of the switch.
          default: its value, as a rule that of the environment variable of its name.
          accepts: turns a value into a valid one, or raises.
          told: a function that is called with all values that the switch has in the
            process and in its threads, whenever one comes or goes; it is not to
            change a switch.
          followers: names of switches that whoever sets this one sets with it.
        """
        self._accepts[name] = accepts
        if told is not None:
            self._told[name] = told

        def value(self):
            if told is not None and (self._held or self._unsure):
                self._settle()
            if self._overrides.get().before is None:
                return self._values[name]
            overrides = self._here()
            return overrides[name] if name in overrides else self._values[name]

        setattr(Config, name, property(value))
        try:
            self.update(name, default)
        except (ValueError, RuntimeError) as error:
            raise type(error)(f"{error}{_origin(name.upper())}") from None
        self._followers[name] = followers

    def update(self, name, value):
        """Set a switch for the whole process.

        Raises:
          AttributeError: if there is no switch of this name.
          ValueError: if it does not take such a value.
        """
        value = self._accepted(name, value)
        for each in self._with_followers(name):
            self._set(each, value)

    def _with_followers(self, name):
        return name, *self._followers.get(name, ())

    def _set(self, name, value):
        self._chosen[name] = value
        try:
            self._publish(name)
        except BaseException:  # an interrupt: the switch is set, and nobody knows
            self._publish(name)
            raise

    def override(self, name, value):
        """Set a switch for a ``with`` block, in this thread alone."""
        value = self._accepted(name, value)
        return Override(self, dict.fromkeys(self._with_followers(name), value))

    def override_all(self, changes):
        """Set the switches of a dictionary for a ``with`` block, in this thread."""
        accepted = {name: self._accepted(name, changes[name]) for name in changes}
        return Override(self, accepted)

    def read(self, name):
        """Return the value of a switch in this thread."""
        self._known(name)
        return getattr(self, name)

    def parse_flags_with_absl(self):
        """Set the switches that the command line names: ``--jax_enable_x64=1``.

        Of its words, those that begin with ``--jax`` and stand before ``--`` count. A
        name alone means true. As in JAX, names that are no switches are passed over,
        since they may be meant for others; absl is not needed.
        """
        words = takewhile(lambda word: word != "--", sys.argv[1:])
        for word in words:
            name, _, value = word.removeprefix("--").partition("=")
            if word.startswith("--jax") and name in self._accepts:
                self.update(name, _number_or_word(value or "true"))

    def config_with_absl(self):
        """Make the switches flags of absl, which sets them as its program starts."""
        app, flags = map(import_module, ("absl.app", "absl.flags"))
        for name, value in self.values.items():
            if not isinstance(value, bool | None):
                value = str(value)
            kind = "bool" if isinstance(value, bool) else "string"
            define = getattr(flags, f"DEFINE_{kind}")
            define(name, value, f"The switch {name} of minijax.")
        app.call_after_init(lambda: self.complete_absl_config(flags))

    def complete_absl_config(self, absl_flags):
        """Set the switches that absl has found on the command line."""
        for name in self.values:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                value = absl_flags.FLAGS[name].value
                self.update(name, _number_or_word(str(value)))

    def _here(self):
        before = self._overrides.get()
        extent = current_context_value(self._overrides)
        if extent is not before and self._held:
            self._settle()
        return extent.value

    def _publish(self, name):
        while self._values != self._chosen:  # another thread may set a switch as well
            self._values = {**self._chosen}
        self._tell(name)

    def _tell(self, name):
        if name not in self._told:
            return
        self._unsure.add(name)  # an interrupt may come before all is told
        told = None
        while told != (now := (self._values[name], *self._held)):
            told = now
            held = [ref() for ref, names in now[1:] if name in names]
            held = [x.changes[name] for x in held if not is_over(x)]
            self._told[name]([now[0], *held])
        self._unsure.discard(name)

    def _expect(self, override, names):
        """Tell of an override, whose block is about to begin."""
        self._held.append((weakref.ref(override), names))
        self._unsure |= names
        self._settle()

    def _settle(self):
        """Tell of all that has come, and of all that is over."""
        for held in [*self._held]:
            if is_over(held[0]()):
                self._unsure |= held[1]
                with suppress(ValueError):  # another thread was first
                    self._held.remove(held)
        for name in [*self._unsure]:
            self._tell(name)

    def _accepted(self, name, value):
        try:
            return self._known(name)(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def __getattr__(self, name):
        self._known(name)  # raises, as a known switch is a property

    def _known(self, name):
        if name in self._accepts:
            return self._accepts[name]
        if not name.startswith("__"):
            run_registrations()  # a floor that is asleep may have it
        if name not in self._accepts:
            close = import_module("difflib").get_close_matches(name, self._accepts)
            meant = f" Did you mean {close[0]}?" if close else ""
            raise AttributeError(f"Unrecognized config option: {name}.{meant}")
        return self._accepts[name]


class Override(ContextValue):
    """Values of some switches in this thread, for a ``with`` block.

    Args:
      config: the `Config` of the switches.
      changes: a dictionary from their names to values that they accept.
    """

    __slots__ = ("changes", "config")

    def __init__(self, config, changes):
        super().__init__(config._overrides)
        self.config, self.changes = config, changes

    def __enter__(self):
        told = self.config._told.keys() & self.changes
        try:
            if told and not self.begun:  # they hear of it before it is in force
                self.lock.acquire(False)
                self.config._expect(self, told)
            self.value = current_context_value(self.variable).value | self.changes
            super().__enter__()
        except BaseException:  # an interrupt: it does not begin
            if not self.begun and self.lock.locked():
                self.lock.release()
            raise

    def again(self):
        """Return what can be entered like this one, once more."""
        return Override(self.config, self.changes)


def is_over(override):
    """Return whether nobody holds an override, or its block has ended."""
    return override is None or not override.lock.locked()


def _number_or_word(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _on_or_off(value):
    if not isinstance(value, str):
        return bool(value)
    for meaning, words in (True, "1 true t yes y on"), (False, "0 false f no n off"):
        if value.lower() in words.split():
            return meaning
    raise ValueError(f"{value!r} is neither on nor off.")


def _one_of(choices, value):
    """Return one of the `choices`, which are strings and perhaps None."""
    value = getattr(value, "value", value)  # JAX names some by the members of an Enum
    if value not in choices:
        words = [choice for choice in choices if choice is not None]
        none = "None or in " if None in choices else "in "
        raise ValueError(
            f"new enum value must be {none}{words}, got {value} of type {type(value)}."
        )
    return value


def _origin(variable):
    if variable not in os.environ:
        return ""
    return f" The value is the environment variable {variable}: correct or unset it."


config = Config()
config.define("jax_enable_x64", os.environ.get("JAX_ENABLE_X64", "0"), _on_or_off)


def enable_x64(new_val: bool = True) -> AbstractContextManager:
    """Return a context manager inside which 64-bit types exist (or do not).

    Reference: ``jax.enable_x64``.
    """
    return config.override("jax_enable_x64", new_val)


# Data types: which there are, and which are in force.

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

bfloat16 = getattr(ml_dtypes, "bfloat16", None)
# Types of a byte and less.
NARROW_NAMES = {
    np.floating: """
        float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3
        float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
        float8_e8m0fnu
    """.split(),
    np.signedinteger: ["int1", "int2", "int4"],
    np.unsignedinteger: ["uint1", "uint2", "uint4"],
}
# From types of ml_dtypes, which NumPy takes for none of numbers, to what they are.
KINDS_OF_ML_DTYPES = {
    getattr(ml_dtypes, name): kind
    for kind, names in (*NARROW_NAMES.items(), (np.floating, ["bfloat16"]))
    for name in names
    if hasattr(ml_dtypes, name)
}

SHORT_NAMES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

SHORT_DTYPE_NAMES = {np.dtype(name): short for name, short in SHORT_NAMES.items()}
if bfloat16 is not None:
    SHORT_DTYPE_NAMES[np.dtype(bfloat16)] = "bf16"
LISTED_DTYPES = ", ".join(map(str, SHORT_DTYPE_NAMES))
# From dtypes of a byte and less to those in which they are computed. Floats of six bits
# and integers of one have a name and limits, and no arrays.
_WIDER = {np.floating: "float32", np.signedinteger: "int8", np.unsignedinteger: "uint8"}
WIDE_DTYPES = {
    np.dtype(getattr(ml_dtypes, name)): np.dtype(_WIDER[kind])
    for kind, names in NARROW_NAMES.items()
    for name in names
    if hasattr(ml_dtypes, name) and name[:6] != "float6" and name[-4:] != "int1"
}
SHORT_DTYPE_NAMES |= {
    dtype: dtype.name.replace("int", "i").replace("float", "f").replace("ui", "u")
    for dtype in WIDE_DTYPES
}
DTYPE_NAMES = {
    dtype: dtype.name for dtype in SHORT_DTYPE_NAMES
}  # dtype.name itself takes its time

# The type of tangents of integers: it has no values, and no arithmetic.
float0 = np.dtype([("float0", np.void, 0)])

# From NumPy's dtypes of what is no number, such as keys of generators, to ours. Shapes
# may be changed; arithmetic and NumPy's sight of the elements are refused.
EXTENDED_DTYPES: dict = Registry()


class extended(np.void):  # type: ignore[misc]  # as np.record is one
    """The kind of dtypes of what is no number: ``issubdtype(x.dtype, extended)``.

    Reference: ``jax.dtypes.extended``.
    """


class ExtendedDType:
    """A dtype of what is no number. It is written by its name, and not as NumPy would.

    It equals the dtype of its buffers, and NumPy takes the one for the other. It has
    no kind and no fields, which would be those of the buffers.

    Args:
      name: string.
      dtype: NumPy dtype of the elements in memory.
    """

    __slots__ = ("dtype", "name")

    itemsize = property(lambda self: self.dtype.itemsize)
    type = property(lambda self: self.dtype.type)

    def __init__(self, name, dtype):
        self.name, self.dtype = name, dtype

    def __eq__(self, other):
        return self.dtype == other

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return numpy_dtype_of, (self.dtype,)


def numpy_dtype_of(dtype):
    """Return the dtype of arrays that NumPy takes `dtype` for."""
    dtype = np.dtype(dtype)
    return dtype if dtype.isbuiltin else EXTENDED_DTYPES.get(dtype, dtype)


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype in texts of arrays."""
    return "float0" if dtype == float0 else numpy_dtype_of(dtype).name


PYTHON_TYPES = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
KIND_OF_DTYPE = {
    dtype: "h" if dtype.itemsize <= 2 and kind in "fV" else kind
    for dtype in SHORT_DTYPE_NAMES
    for kind in WIDE_DTYPES.get(dtype, dtype).kind
}


def dtype_kind(dtype: Any) -> str:
    """Return one letter: bool, integer, unsigned, half, float, complex; x; or "0".

    The letter of extended dtypes is "x".
    """
    return KIND_OF_DTYPE.get(dtype) or ("x" if dtype in EXTENDED_DTYPES else "0")


ML_DTYPES_MISSING = (
    "{} is a type of the package ml_dtypes, which is not installed: "
    "pip install ml_dtypes, or minijax-book[bfloat16]."
)


def as_dtype(dtype):
    """Return what NumPy takes `dtype` for; say what is missing if it is bfloat16."""
    try:
        return numpy_dtype_of(dtype)
    except TypeError:
        if bfloat16 is None and dtype == "bfloat16":
            raise TypeError(ML_DTYPES_MISSING.format(dtype)) from None
        raise


X64_TO_X32 = {np.dtype(wide): np.dtype(narrow) for wide, narrow in [
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"),
    ("complex128", "complex64"),
]}  # fmt: skip


def canonicalize_dtype(dtype):
    """Return the NumPy dtype in force for `dtype`: 64 bits become 32 by default.

    Args:
      dtype: anything that NumPy takes for a dtype; Python's types mean 64 bits.
    """
    dtype = as_dtype(PYTHON_TYPES.get(dtype, dtype) if type(dtype) is type else dtype)
    return dtype if is_canonical_dtype(dtype) else X64_TO_X32[dtype]


def is_canonical_dtype(dtype):
    """Return whether new numbers can have a NumPy dtype: 64 bits by a switch only."""
    return dtype not in X64_TO_X32 or config.jax_enable_x64


def is_real_floating(dtype):
    """Return whether `dtype` is a real floating-point type."""
    return dtype_kind(np.dtype(dtype)) in "hf"


def is_inexact(dtype: Any) -> bool:
    """Return whether `dtype` is a floating-point or complex type."""
    return dtype_kind(np.dtype(dtype)) in "hfc"


def tangent_dtype_of_primal(dtype):
    """Return the type of tangents of `dtype`: itself, or float0 if it is discrete."""
    return np.dtype(dtype) if is_inexact(dtype) else float0


def short_dtype_name(dtype):
    """Return the spelling of jaxprs: ``f32`` for float32."""
    dtype = numpy_dtype_of(dtype)
    if dtype == float0:
        return "float0"
    return SHORT_DTYPE_NAMES.get(dtype) or str(dtype)


_collected = context_variable("collected_warnings", None)


def collect_warnings():
    """Return a context manager whose value is a list of what the package warns of.

    No user sees these warnings; other threads warn as ever.
    """
    return ContextValue(_collected, [])


def warn_user(
    message: str, category: type[Warning] = UserWarning, stacklevel: int = 1
) -> None:
    """Warn, as ``warnings.warn`` does, or tell who has called `collect_warnings`.

    Args:
      message: of the warning.
      category: its class.
      stacklevel: 1 for the line that calls this function, 2 for that function's caller;
        lines of this package are passed over from there.
    """
    collected = current_context_value(_collected).value
    if collected is not None:
        collected.append(message)
        return
    frame: Any = sys._getframe(stacklevel)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("minijax."):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel + 1)


def check_dtype(dtype: Any, name: str) -> np.dtype:
    """Return the dtype that a user has asked for, canonical.

    Args:
      dtype: what the user wrote.
      name: the function that was called.

    Raises:
      TypeError: if there are no arrays of this dtype.
      ValueError: if it is an array.
    """
    if hasattr(dtype, "aval"):
        raise ValueError(
            f"{name} was asked for an array as its dtype, {dtype!r}; instead of "
            "dtype=x use dtype=x.dtype."
        )
    canonical = canonicalize_dtype(dtype)
    if (
        canonical not in SHORT_DTYPE_NAMES
        and canonical != float0
        and canonical not in EXTENDED_DTYPES
    ):
        raise TypeError(
            f"{name} was asked for dtype {dtype!r}; arrays hold numbers and bools: "
            + LISTED_DTYPES
        )
    if dtype not in PYTHON_TYPES and np.dtype(dtype) != canonical:
        _tell_of_x64(np.dtype(dtype), name, canonical)
    return canonical


def _warn_or_error(value):
    if value == "allow":
        raise NotImplementedError(
            f"jax_explicit_x64_dtypes is 'warn' or 'error' here, not {value!r}: with "
            "jax_enable_x64 there are 64-bit types, and without it there are none."
        )
    if value not in ("warn", "error"):
        raise ValueError(
            f"{_explicit}: new enum value must be in ['warn', 'error', 'allow'], got "
            f"{value}"
        )
    return str.__str__(value)


_explicit = "jax_explicit_x64_dtypes"


config.define(_explicit, os.environ.get(_explicit.upper(), "warn"), _warn_or_error)


def _tell_of_x64(dtype, name, canonical):
    """Say that a 64-bit dtype, asked for in a function, becomes another one.

    Raises:
      ValueError: if the switch ``jax_explicit_x64_dtypes`` is ``"error"``.
    """
    way_out = 'minijax.config.update("jax_enable_x64", True)'
    if config.jax_explicit_x64_dtypes == "error":
        raise ValueError(
            f"Explicitly requested dtype {dtype} in {name} is not available: 64-bit "
            f"types are off. To have them, {way_out}."
        )
    warn_user(
        f"Explicitly requested dtype {dtype} in {name} is not available and becomes "
        f"{canonical}: 64-bit types are off. To have them, {way_out}.",
        stacklevel=4,
    )


def canonical_dtype_of_array(x):
    """Return the dtype in force for the numbers of a NumPy array or scalar.

    Raises:
      TypeError: if there are no arrays of its dtype.
      ValueError: if it is a masked array, since arrays have no masks.
    """
    if type(x) is not np.ndarray and hasattr(x, "filled"):
        raise ValueError(
            "numpy masked arrays are not supported: their masks would be lost. "
            "Use arr.filled() to convert the value to a standard numpy array."
        )
    return _dtype_in_force(x.dtype, config.jax_enable_x64)


@cache
def _dtype_in_force(dtype, wide):
    if dtype not in SHORT_DTYPE_NAMES and dtype != float0:
        name = numpy_dtype_of(dtype)
        raise TypeError(f"dtype {name} is not a valid array type, of {LISTED_DTYPES}.")
    return canonicalize_dtype(dtype)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether type `arg1` is of the kind `arg2`; bfloat16 counts as floating.

    So do the floats of a byte and less, and so do such integers as integers.

    Args:
      arg1: a dtype.
      arg2: a dtype, or a kind such as ``numpy.floating``.

    Reference: ``jax.numpy.issubdtype``.
    """
    one = np.dtype(arg1) if isinstance(arg1, str) else arg1
    one = one.type if isinstance(one, np.dtype) else one
    kind = KINDS_OF_ML_DTYPES.get(one) if isinstance(one, type) else None
    if kind and isinstance(arg2, type) and issubclass(arg2, np.generic):
        return arg2 == one or issubclass(kind, arg2)
    return np.issubdtype(arg1, arg2)


VECTOR_ALIGNMENT, MIN_ALIGNED_BYTES = (
    64,
    2**12,
)  # bytes: the longest vector; what is long enough to care


def is_large_array(x):
    """Return whether it matters where the numbers of an array of NumPy begin."""
    plain = isinstance(x, np.ndarray) and x.flags.c_contiguous
    return plain and x.nbytes >= MIN_ALIGNED_BYTES and not x.dtype.hasobject


def aligned_copy(x, dtype):
    """Return a copy of an array that begins where the vectors of a processor may."""
    room = np.empty(x.size * dtype.itemsize + VECTOR_ALIGNMENT, np.uint8)
    start = -room.ctypes.data % VECTOR_ALIGNMENT
    copy = np.ndarray(x.shape, dtype, room, start)
    copy[...] = x
    return copy


PYTHON_NODES = {bool: "bool", int: "int*", float: "float*", complex: "complex*"}
PYTHON_TYPE_OF_NODE = {node: kind for kind, node in PYTHON_NODES.items()}
WEAK_NODES = {"i": "int*", "u": "int*", "f": "float*", "h": "float*", "c": "complex*"}


def lattice_node(dtype, weak_type=False):
    """Return the place of a dtype in the lattice, such as ``"int32"`` or ``"int*"``."""
    if type(dtype) is type and dtype in PYTHON_NODES:
        return PYTHON_NODES[dtype]
    dtype = as_dtype(dtype)
    if dtype not in SHORT_DTYPE_NAMES:
        error = ValueError if dtype in EXTENDED_DTYPES else TypeError
        raise error(
            f"dtype {dtype_name(dtype)} is not a type of numbers: it meets none"
        )
    return (
        WEAK_NODES.get(dtype_kind(dtype), "bool") if weak_type else DTYPE_NAMES[dtype]
    )


def dtype_of_lattice_node(node):
    """Return the dtype in force at a place in the lattice, and whether it is weak."""
    if not node.endswith("*"):
        return canonicalize_dtype(node), False
    return canonicalize_dtype(PYTHON_TYPE_OF_NODE[node]), True
