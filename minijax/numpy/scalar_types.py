"""Scalar types and constants, questions about types, and what is NumPy's own.

References: ``jax.numpy``, ``jax.numpy.printoptions``, ``jax.numpy.load``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.arrays import dtypes, transfer
from minijax.arrays.array import dtype_lattice_join, is_python_scalar, typeof
from minijax.arrays.config import check_strict_promotion
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    as_dtype,
    config,
    dtype_of_lattice_node,
    lattice_node,
    warn_user,
)
from minijax.arrays.interchange import promised
from minijax.core import Array
from minijax.lax import reductions as promotion
from minijax.lax.reductions import is_arraylike
from minijax.numpy.array_creation import array, asarray
from minijax.numpy.operands import array_kind
from minijax.numpy.shapes import canonical_axes

# Scalar types and constants, and questions about types and shapes.


class ScalarType(type):
    """A dtype that makes arrays when it is called: ``float32(1)``, ``dtype=float32``.

    It is equal to NumPy's scalar type, and hashes as that; NumPy's scalars are its
    instances.

    Args:
      name: the name of a NumPy dtype, or of bfloat16.

    Attributes:
      dtype: the NumPy dtype.

    Reference: ``jax.numpy.float32``.
    """

    def __new__(cls, name):
        fields = {"dtype": np.dtype(name), "__module__": "minijax.numpy"}
        return super().__new__(cls, name, (), fields)

    def __init__(cls, name):
        super().__init__(name, (), {})

    def __call__(cls, x):
        """Return `x` as an array of this dtype."""
        return array(x, cls.dtype)

    def __repr__(cls):
        return f"<class 'minijax.numpy.{cls.__name__}'>"

    def __eq__(cls, other):
        return cls is other or cls.dtype.type == other

    def __hash__(cls):
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.dtype.type)


def dtype_like(x):
    """Return the dtype of an array or a dtype; what Python numbers mean in NumPy."""
    if isinstance(x, type) and issubclass(x, np.generic):
        return as_dtype(x)  # whose own attribute `dtype` is a descriptor
    return as_dtype(getattr(x, "dtype", x))


def __getattr__(name):
    unknown = f"module {__name__!r} has no attribute {name!r}"
    narrow = {"bfloat16"}.union(*dtypes.NARROW_NAMES.values())
    missing = dtypes.ML_DTYPES_MISSING.format(name)
    raise AttributeError(missing if name in narrow else unknown)


bool = bool_ = ScalarType("bool")
int8, int16, int32 = ScalarType("int8"), ScalarType("int16"), ScalarType("int32")
int64 = int_ = ScalarType("int64")
uint8, uint16, uint32 = ScalarType("uint8"), ScalarType("uint16"), ScalarType("uint32")
uint64 = uint = ScalarType("uint64")
float16 = ScalarType("float16")
float32 = single = ScalarType("float32")
float64 = float_ = double = ScalarType("float64")
if dtypes.bfloat16 is not None:
    bfloat16 = ScalarType("bfloat16")
if hasattr(dtypes.ml_dtypes, "float4_e2m1fn"):
    int2, int4 = ScalarType("int2"), ScalarType("int4")
    uint2, uint4 = ScalarType("uint2"), ScalarType("uint4")
    float4_e2m1fn = ScalarType("float4_e2m1fn")
    float6_e2m3fn = ScalarType("float6_e2m3fn")
    float6_e3m2fn = ScalarType("float6_e3m2fn")
    float8_e3m4, float8_e4m3 = ScalarType("float8_e3m4"), ScalarType("float8_e4m3")
    float8_e4m3b11fnuz = ScalarType("float8_e4m3b11fnuz")
    float8_e4m3fn = ScalarType("float8_e4m3fn")
    float8_e4m3fnuz = ScalarType("float8_e4m3fnuz")
    float8_e5m2 = ScalarType("float8_e5m2")
    float8_e5m2fnuz = ScalarType("float8_e5m2fnuz")
    float8_e8m0fnu = ScalarType("float8_e8m0fnu")
if hasattr(dtypes.ml_dtypes, "int1"):
    int1, uint1 = ScalarType("int1"), ScalarType("uint1")
complex64 = csingle = ScalarType("complex64")
complex128 = complex_ = cdouble = ScalarType("complex128")

generic, number, inexact = np.generic, np.number, np.inexact
floating, complexfloating = np.floating, np.complexfloating
integer, signedinteger = np.integer, np.signedinteger
unsignedinteger = np.unsignedinteger
ndarray, dtype = Array, np.dtype
pi, e, inf, nan, euler_gamma = math.pi, math.e, math.inf, math.nan, np.euler_gamma
newaxis = None


def finfo(dtype: Any) -> np.finfo:
    """Return the limits of a floating-point type, or of the type of an array.

    Reference: ``jax.numpy.finfo``.
    """
    dtype = dtype_like(dtype)
    if dtype in dtypes.EXTENDED_DTYPES:
        name = dtypes.dtype_name(dtype)
        raise TypeError(f"finfo takes a type of floats, and {name} is none of numbers.")
    of_ml_dtypes = dtypes.KINDS_OF_ML_DTYPES.get(dtype.type) is np.floating
    return dtypes.ml_dtypes.finfo(dtype) if of_ml_dtypes else np.finfo(dtype)


def iinfo(int_type: Any) -> np.iinfo:
    """Return the limits of an integer type, or of the type of an array.

    Raises:
      ValueError: if it is none.

    Reference: ``jax.numpy.iinfo``.
    """
    of_number = is_python_scalar(int_type)
    try:
        dtype = dtype_like(type(int_type) if of_number else int_type)
    except TypeError as error:
        raise ValueError(f"iinfo takes a type of integers: {error}") from None
    if dtype in dtypes.EXTENDED_DTYPES:
        raise ValueError(f"iinfo takes a type of integers, {dtype} is none of numbers.")
    if issubdtype(dtype, np.integer) and dtype.type in dtypes.KINDS_OF_ML_DTYPES:
        limits: Any = dtypes.ml_dtypes.iinfo(dtype)
        return limits
    return np.iinfo(dtype)


issubdtype = dtypes.issubdtype
from_dlpack = transfer.from_dlpack


def result_type(*args: Any) -> np.dtype:
    """Return the dtype that arrays, numbers and dtypes have together.

    Reference: ``jax.numpy.result_type``.
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    keys = {x.dtype for x in args if getattr(x, "dtype", None) in EXTENDED_DTYPES}
    if len(keys) == 1 and all(hasattr(x, "dtype") and x.dtype in keys for x in args):
        return keys.pop()
    nodes = {*map(_node, args)}
    if config.jax_numpy_dtype_promotion == "strict":
        check_strict_promotion(nodes)
    return dtype_of_lattice_node(dtype_lattice_join(*nodes))[0]


def promote_types(a: Any, b: Any) -> np.dtype:
    """Return the dtype in which values of types `a` and `b` meet, if they do.

    Reference: ``jax.numpy.promote_types``.
    """
    if config.jax_numpy_dtype_promotion == "strict":
        check_strict_promotion({lattice_node(a), lattice_node(b)})
    return promotion.promote_types(a, b)


def _node(x):
    if is_arraylike(x):
        aval = typeof(x)
        return lattice_node(aval.dtype, aval.weak_type)
    return lattice_node(x)


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array, a number, or nested sequences of numbers.

    Reference: ``jax.numpy.shape``.
    """
    return _shape_of("shape", a)


def _shape_of(name, a):
    if hasattr(a, "shape"):
        return np.shape(a)
    a = promised(a)
    if not is_arraylike(a):
        warn_user(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position "
            "0. In a future JAX release this will be an error.",
            DeprecationWarning,
            stacklevel=3,
        )
    return np.shape(a)


def ndim(a: Any) -> int:
    """Return the number of axes of an array.

    Reference: ``jax.numpy.ndim``.
    """
    return len(_shape_of("ndim", a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements of an array, or its size along axes.

    Reference: ``jax.numpy.size``.
    """
    sizes = _shape_of("size", a)
    return math.prod(sizes[i] for i in canonical_axes(axis, len(sizes)))


def isscalar(element: Any) -> Any:
    """Return whether `element` is a number or an array without axes.

    Reference: ``jax.numpy.isscalar``.
    """
    if isinstance(element, (str, bytes)):
        return True
    element = promised(element)
    return is_arraylike(element) and not typeof(element).shape


def iscomplexobj(x: Any) -> Any:
    """Return whether the dtype of an array, or of nested sequences, is complex.

    Reference: ``jax.numpy.iscomplexobj``.
    """
    if x is None or isinstance(x, (str, bytes)):
        return False
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype):  # types such as ShapeDtypeStruct as well
        return dtype.kind == "c"
    return array_kind(x if is_arraylike(x) else array(x)) == "c"


def isrealobj(x: Any) -> Any:
    """Return whether the dtype of an array is not complex.

    Reference: ``jax.numpy.isrealobj``.
    """
    return not iscomplexobj(x)


# What is NumPy's own: printing, files, and classes of dtypes.

array_repr, array_str = np.array_repr, np.array_str
save, savez = np.save, np.savez
character, flexible, object_ = np.character, np.flexible, np.object_
ComplexWarning = np.exceptions.ComplexWarning


def get_printoptions() -> Any:
    """Return how NumPy prints arrays, and these.

    Reference: ``jax.numpy.get_printoptions``.
    """
    return np.get_printoptions()


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how NumPy prints arrays, and these.

    Reference: ``jax.numpy.set_printoptions``.
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """Return a context in which arrays are printed in another way.

    Reference: ``jax.numpy.printoptions``.
    """
    return np.printoptions(*args, **kwargs)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array, or the arrays, in a file that `save` or `savez` wrote.

    NumPy's files do not name the types of other packages. Elements of two bytes that
    have no name are taken for ``bfloat16``. Those of one byte could be of many types
    (``int4``, ``float8_e4m3fn``): NumPy's array of bytes is returned, whose ``view``
    the caller takes.

    Reference: ``jax.numpy.load``.
    """
    found = np.load(file, *args, **kwargs)
    if dtypes.bfloat16 is not None and getattr(found, "dtype", None) == "V2":
        found = found.view(dtypes.bfloat16)
    if not isinstance(found, np.ndarray) or found.dtype.kind == "V":
        known = getattr(found, "dtype", None) == dtypes.bfloat16
        return asarray(found) if known else found
    return asarray(found)


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0
) -> Array:
    """Return the numbers that lie in some bytes.

    Reference: ``jax.numpy.frombuffer``.
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """Return the numbers that stand in a text, with `sep` between them.

    Reference: ``jax.numpy.fromstring``.
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


def _impure(name):
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"jnp.{name}() is not implemented because it may be non-pure and thus "
            "unsafe for use with JIT and other JAX transformations. Consider using "
            f"jnp.asarray(np.{name}(...)) instead."
        )

    refused.__doc__ = f"""Raise NotImplementedError.

    Reference: ``jax.numpy.{name}``.
    """
    refused.__name__ = refused.__qualname__ = name
    return refused


fromfile, fromiter = map(_impure, ("fromfile", "fromiter"))
