"""What differs between backends, or from JAX, for special numbers, and why.

Each entry names a case of `tests.special_values` exactly, and says at which operands it
may differ; `book/differences.md` has the same in words. At the end is what differs in
the random programs of `tests.random_calls`.
"""

import numpy as np

FLOATS = ["bfloat16", "float16", "float32", "float64"]
COMPLEX_TYPES = ["complex64", "complex128"]


def both_zero(x, y):
    """Return where there are two zeros: either is the larger one."""
    return (x == 0) & (y == 0)


def least(x):
    """Return where a number is zero but for a bit: there is no half of it."""
    return abs(x.astype(np.float64)) <= float(np.finfo(x.dtype).smallest_subnormal)


def above_65504(x):
    """Return where the third power of a half is too large; 1 divided by it is not."""
    return abs(x.astype(np.float64)) ** 3 > 65504


# Between what is evaluated and machine code.
BETWEEN_BACKENDS = {
    "erf(float32)": least,
    "erf(float64)": least,
    "erf_inv(float64)": least,
    "integer_pow(float16) {'y': -3}": above_65504,
    **{f"max({dtype})": both_zero for dtype in FLOATS},
    **{f"min({dtype})": both_zero for dtype in FLOATS},
}


def at_edges(*xs):
    """Return where a part of an operand is zero or not finite."""
    parts = [part for x in xs for part in (x.real, x.imag)]
    return np.any([(part == 0) | ~np.isfinite(part) for part in parts], axis=0)


def near_zeros(x):
    """Return where log Γ(x) or its derivative is almost zero."""
    x = x.astype(np.float64)
    return (x == 1) | (x == 2) | (x == 1.5) | (x == -0.5)


def anywhere(x):
    """Return all operands: the number beside them has a zero for a part."""
    return np.ones(x.shape, bool)


# Functions that follow C in NumPy, where a part is zero or not finite.
COMPLEX = [f"{name}({{}})" for name in """
    abs acos acosh asin asinh atan atan2 atanh clamp cos cosh exp exp2 log log1p
    logistic max min pow rsqrt sign sin sinh sqrt tan tanh
""".split()] + [f"{text} {{}}" for text in """
    jnp.log2(x) jnp.log10(x) jnp.sign(x) x**0.5 x**-0.5 x**2.0 x**1.5 2.0**x (-2.0)**x
    jnp.power(x,y) jnp.arctan2(x,y) jnp.logaddexp(x,y)
    jnp.power(x,jnp.arange(-3,x.size-3)%8-3)
""".split()]  # fmt: skip

BESIDE_ZERO = ["0.0**x", "1.0**x", "x/0"]

# Between what is evaluated and compiled JAX.
FROM_JAX = {
    **{x.format(y): at_edges for x in COMPLEX for y in COMPLEX_TYPES},
    **{f"{x} {y}": anywhere for x in BESIDE_ZERO for y in COMPLEX_TYPES},
    **{f"max({dtype})": both_zero for dtype in FLOATS},
    **{f"min({dtype})": both_zero for dtype in FLOATS},
    **{f"lgamma({dtype})": near_zeros for dtype in ("bfloat16", "float32")},
    "digamma(float64)": near_zeros,
    "add_any(bool)": lambda x, y: x | True,  # JAX adds no booleans
    "x/0 bool": lambda x: ~x,
    "jnp.fmod(x,y) bool": lambda x, y: x & ~y,
}


# Random programs. JAX refuses to compile a derivative forwards of a `custom_vjp`; we
# refuse it where it is computed, which it may not be.
REFUSED_WHEN_COMPILED = "forward-mode autodiff"


def beyond_linearize(source, wanted):
    """Whether JAX cannot linearize a rule that `optimize_remat` has wrapped."""
    words = "Linearization failed to produce known values"
    return "optimize_remat" in source and words in str(wanted)


def strong_gradient(source, way):
    """Whether a gradient may be strong in one package, and weak in the other.

    JAX's `roll` pads in its transpose, and the zero that it pads with is strong. And
    of a number of Python that is the carry of a loop: in JAX the gradient of the same
    scan is strong alone, and weak within another loop (seed 202926).

    Args:
      source: of the program.
      way: the name of the transformation, or of two.
    """
    loops = source.count("lax.scan(") + source.count("lax.fori_loop(")
    return "jnp.roll(" in source or (loops > 1 and ("vjp" in way or "grad" in way))
