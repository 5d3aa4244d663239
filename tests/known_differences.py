"""What differs between backends, or from JAX, for special numbers, and why.

Each entry names a case of `tests.special_values` exactly, and says at which operands it
may differ; `book/differences.md` has the same in words. At the end is what differs in
the random programs of `tests.random_calls`.
"""

import ast

import numpy as np

FLOATS = ["bfloat16", "float16", "float32", "float64"]
COMPLEX_TYPES = ["complex64", "complex128"]


def both_zero(*xs):
    """Return where there are two zeros: either is the larger one."""
    return np.sum([x == 0 for x in xs], axis=0) > 1


def least(x):
    """Return where a number is zero but for a bit: there is no half of it."""
    return abs(x.astype(np.float64)) <= float(np.finfo(x.dtype).smallest_subnormal)


def above_65504(x):
    """Return where the third power of a half is too large; 1 divided by it is not."""
    return abs(x.astype(np.float64)) ** 3 > 65504


def near_zero(x, y):
    """Return where a result is the small difference of larger numbers."""
    with np.errstate(all="ignore"):
        return abs(np.logaddexp(x, y)) < 1e-2 * np.maximum(abs(x), abs(y))


# Between what is evaluated and machine code.
BETWEEN_BACKENDS = {
    "erf(float32)": least,
    "erf(float64)": least,
    "erf_inv(float64)": least,
    "integer_pow(float16) {'y': -3}": above_65504,
    **{f"{f}({dtype})": both_zero for f in ("max", "min", "clamp") for dtype in FLOATS},
}

# Between what is evaluated and a card, besides: its last bits of exp and log.
ON_A_CARD = {"jnp.logaddexp(x,y) float32": near_zero}


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
    **{f"{f}({dtype})": both_zero for f in ("max", "min", "clamp") for dtype in FLOATS},
    **{f"lgamma({dtype})": near_zeros for dtype in ("bfloat16", "float32")},
    "digamma(float64)": near_zeros,
    "add_any(bool)": lambda x, y: x | True,  # JAX adds no booleans
    "x/0 bool": lambda x: ~x,
    "jnp.fmod(x,y) bool": lambda x, y: x & ~y,
}


# Slopes that the values beside them belie, with the points. They are JAX's too.
TINY = float(np.finfo("float32").tiny)
UNEVEN_SLOPES = {
    # 1 / (2 sqrt(x)), which is divided by a zero with a sign
    **dict.fromkeys(["lax.sqrt", "numpy.sqrt"], [-0.0]),
    # that of atan2(0, x), 0 / x²; the square is zero here
    "numpy.angle": [0.0, 1e-42, -1e-42, TINY, -TINY],
}
# Functions whose slopes differ from JAX's at some points, and what JAX's are there.
SLOPES_FROM_JAX = {
    **dict.fromkeys(
        ["lax.acosh", "numpy.acosh", "numpy.arccosh"],
        "numbers below -1, where acosh is NaN",
    ),
    **dict.fromkeys(["numpy.i0", "scipy.special.i0"], "1 at 0; NaN where it overflows"),
    "numpy.sinc": "a quotient's near 0, where it cancels: 1 % of it at 1e-4",
    "scipy.special.exp1": "NaN below 0, as its value; ours is that of the formula",
    "scipy.special.factorial": "NaN of negative integers, where it is 0",
    "scipy.special.ndtri": "0 at both ends, where it is infinite",
    "scipy.special.spence": "NaN at 0, 1, 2",
}
# Distributions where a slope may be NaN: probabilities at and beyond the ends of the
# support, and densities that are exponentials of minus infinity, whose slope is
# infinite. JAX has the same formulas.
NO_SLOPES = {
    f"scipy.stats.{name}"
    for name in """
    beta.cdf beta.logsf beta.pdf beta.sf binom.pmf cauchy.pdf chi2.cdf chi2.logsf
    chi2.pdf chi2.sf gamma.cdf gamma.pdf gennorm.cdf gennorm.pdf geom.pmf gumbel_l.pdf
    gumbel_r.pdf multivariate_normal.pdf nbinom.pmf norm.pdf poisson.entropy poisson.pmf
    t.pdf truncnorm.cdf truncnorm.logcdf truncnorm.logsf truncnorm.sf wrapcauchy.pdf
    """.split()
}


# Random programs. JAX refuses to compile a derivative forwards of a `custom_vjp`; we
# refuse it where it is computed, which it may not be.
REFUSED_WHEN_COMPILED = "forward-mode autodiff"


def beyond_linearize(source, wanted):
    """Whether JAX cannot linearize a rule that `optimize_remat` has wrapped."""
    words = "Linearization failed to produce known values"
    return "optimize_remat" in source and words in str(wanted)


def _is_loop(node):
    words = "lax.scan", "lax.fori_loop"
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(words)


def loop_in_a_loop(source):
    """Whether the body of a scan or fori_loop of a program has another one in it."""
    nodes = [*ast.walk(ast.parse(source))]
    bodies = {ast.unparse(x) for node in nodes if _is_loop(node) for x in node.args}
    functions = [
        x for x in nodes if isinstance(x, ast.FunctionDef) and x.name in bodies
    ]
    return any(_is_loop(node) for f in functions for node in ast.walk(f))


def strong_gradient(program, way, pairs):
    """Whether some gradients may be strong in one package, and weak in the other.

    JAX's `roll` pads in its transpose, and the zero that it pads with is strong. And
    of a number of Python that is the carry of a loop: in JAX the gradient of the same
    scan is strong alone, and weak within another loop, where ours may be strong
    (seed 202926).

    Args:
      program: with its `source` and its `inputs`.
      way: the name of the transformation, or of two.
      pairs: our result and JAX's, for each whose weakness differs.
    """
    if not ("vjp" in way or "grad" in way):
        return False
    if "jnp.roll(" in program.source:
        return True
    numbers = [x for x in program.inputs.values() if type(x) is float]
    carried = loop_in_a_loop(program.source) and len(pairs) <= len(numbers)
    return carried and all(
        x.shape == () and not x.weak_type and y.weak_type for x, y in pairs
    )
