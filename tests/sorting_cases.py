"""Arrays to sort, with all that is special; and their order, found by Python."""

import math

import numpy as np

DTYPES = "bool int8 uint8 int16 int32 uint32 float16 bfloat16 float32 complex64".split()
# Around what is sorted by counting, the boxes of a digit, and lanes.
SIZES = 0, 1, 2, 3, 7, 8, 9, 15, 17, 24, 25, 33, 255, 257


def dtype_of(name):
    """The dtype of a name; bfloat16 is that of ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def numbers(name, shape, seed=0):
    """An array with many equal elements; of floats, also NaN, infinities and zeros."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.integers(-3, 4, shape).astype(float)
    if name in ("float16", "bfloat16", "float32"):
        x = special(x, rng)
    elif name == "complex64":
        parts = x, rng.integers(-1, 2, shape).astype(float)
        x = np.empty(shape, complex)
        x.real, x.imag = (special(part, rng) for part in parts)
    elif name != "bool":
        info = np.iinfo(name)
        x = rng.choice([info.min, info.max, 0, 1, info.max // 3], shape)
    return np.asarray(x).astype(dtype_of(name))


def special(x, rng):
    """Put NaN of both signs, infinities and -0.0 among floats."""
    chance = rng.random(x.shape)
    for low, value in zip(
        np.arange(0, 0.5, 0.08), (np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0)
    ):
        x = np.where((chance >= low) & (chance < low + 0.08), value, x)
    return x


def order(*keys):
    """The places in order, by Python's sort of tuples: NaN last, zeros equal."""

    def rank(x):
        x = float(x)
        return (math.isnan(x), 0.0 if math.isnan(x) else x + 0.0)

    def key(place):
        found = []
        for x in keys:
            value = x[place]
            parts = [value.real, value.imag] if x.dtype.kind == "c" else [value]
            found += map(rank, parts)
        return found

    return np.array(sorted(range(len(keys[0])), key=key), int)


def same_bits(x, y):
    """Whether two arrays are equal in type, shape and all bits."""
    x, y = np.asarray(x), np.asarray(y)
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return False
    return np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
