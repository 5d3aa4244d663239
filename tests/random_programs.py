"""Random straight-line programs, run by minijax and by real JAX.

A program is text: inputs of random shapes and dtypes, and lines that each apply one
function to values that are there already. Every line is first tried on the numbers
that JAX has for its operands, so that a disagreement is at once a small one; a line
that JAX refuses has to be refused by minijax with an error of the same class. What is
left is run as a whole under jvp, vjp and vmap, and by way of its jaxpr.

    python -m tests.random_programs --seed 7 --count 100

prints where the two packages do not agree. This needs real JAX. With
``--control-flow`` the programs are those of `tests.random_control`.
"""

import importlib
import sys
import warnings

import numpy as np

from tests.commands import options_of

DTYPES = """
    float32 float32 float32 float32 float16 bfloat16 int32 int32 int8 uint8 uint32
    bool complex64
""".split()
WIDE = {"float32": "float64", "int32": "int64", "complex64": "complex128"}
NUMBERS = "2 3 -1 0 True 0.5 -1.5 2.0 0.0 (1+2j)".split()
CONSTANTS = ["np.float32(1.5)", "np.int8(3)", "np.arange(3)", "np.float64(2)"]

# What a line may be. A group is chosen first, then one of its members. In braces:
# x, y: values; o: a value, a number or a constant; the others are drawn to fit x.
UNARY = """
    sin cos tanh exp arctan sinh cosh arcsinh expm1 square negative abs sqrt log log1p
    reciprocal cbrt exp2 arcsin arctanh arccosh tan positive conj real imag sign floor
    ceil round trunc isnan isfinite isinf logical_not bitwise_not zeros_like
""".split()
BINARY = """
    add subtract multiply divide maximum minimum power arctan2 mod fmod remainder
    floor_divide logaddexp hypot equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift
    right_shift nextafter isclose
""".split()
OPERATORS = "+ + - - * * * / // % ** < >= == != & | ^".split()
LAX = "sin logistic rsqrt erf erfc lgamma is_finite population_count neg abs".split()
TOTALS = "sum sum prod max min mean var std any all count_nonzero ptp".split()
GROUPS = [
    [f"jnp.{name}({{x}})" for name in UNARY],
    [f"jnp.{name}({{x}}, {{o}})" for name in BINARY],
    [f"jnp.{name}({{o}}, {{x}})" for name in BINARY],
    [f"{{x}} {symbol} {{o}}" for symbol in OPERATORS],
    [f"{{o}} {symbol} {{x}}" for symbol in OPERATORS],
    [f"lax.{name}({{x}})" for name in LAX]
    + ["-{x}", "~{x}", "abs({x})", "lax.integer_pow({x}, {few})", "{x} ** {few}"],
    [f"jnp.{name}({{x}}, {{axes}})" for name in TOTALS]
    + [f"jnp.{name}({{x}}, {{axes}}, keepdims=True)" for name in TOTALS],
    ["{x}.sum()", "{x}.mean({axis})", "{x}.max({axes})", "{x}.astype('{dtype}')",
     "jnp.argmax({x}, {axis})", "jnp.argmin({x})", "jnp.linalg.norm({x})",
     "jnp.sum({x}, {axes}, where={x} > 0)", "lax.convert_element_type({x}, '{dtype}')"],
    ["jnp.cumsum({x}, {axis})", "jnp.cumprod({x}, {axis})"]
    + [f"lax.{name}({{x}}, {{place}}, reverse={{flag}})"
       for name in "cumsum cumprod cummax cummin cumlogsumexp".split()],
    ["jnp.transpose({x}, {permutation})", "{x}.T", "jnp.reshape({x}, {factors})",
     "{x}.reshape(-1)", "jnp.expand_dims({x}, {axis})", "jnp.squeeze({x})",
     "jnp.swapaxes({x}, {axis}, {axis})", "jnp.moveaxis({x}, {axis}, {axis})",
     "jnp.broadcast_to({x}, {taller})", "lax.broadcast({x}, (2, {flag}))",
     "lax.broadcast_in_dim({x}, {taller}, {last})", "jnp.atleast_2d({x})"],
    ["jnp.flip({x}, {axes})", "jnp.roll({x}, {few}, {axis})", "jnp.tile({x}, (2, 1))",
     "jnp.repeat({x}, 2, {axis})", "jnp.pad({x}, 1)", "jnp.pad({x}, (0, 2))",
     "lax.rev({x}, ({place},))", "jnp.tril({x})", "jnp.triu({x}, 1)", "jnp.trace({x})",
     "jnp.diagonal({x})", "jnp.diag({x})", "lax.pad({x}, {zero}, {padding})"],
    ["{x}[{index}]"] * 6 + ["lax.slice({x}, {zeros}, {sizes}, {strides})"],
    ["jnp.where({x} > 0, {x}, {o})", "jnp.where({o} != {x}, {o}, 0)",
     "jnp.where({x} == {x}, {o}, {o})", "lax.select({x} > {zero}, {x}, {x} * {x})",
     "lax.select_n({x} > {zero}, {x}, {x} + {x})", "jnp.clip({x}, 0, 2)",
     "jnp.clip({x}, -0.5, {o})", "lax.clamp({zero}, {x}, {x} * {x})"],
    ["jnp.concatenate([{x}, {x}], {axis})", "jnp.concatenate([{x}, {y}], {axis})",
     "jnp.stack([{x}, {x}], {axis})", "jnp.stack([{x}, {y}])", "jnp.append({x}, {y})",
     "jnp.hstack([{x}, {x}])", "jnp.split({x}, 2, {axis})[1]", "jnp.array([{o}, 1])"],
    ["{x} @ {y}", "jnp.dot({x}, {y})", "jnp.dot({x}, {x}.T)", "{x}.T @ {x}",
     "jnp.outer({x}, {y})", "jnp.vdot({x}, {x})", "jnp.inner({x}, {x})",
     "jnp.tensordot({x}, {x}, {x}.ndim)", "jnp.matmul({x}, jnp.swapaxes({x}, -1, -2))",
     "lax.dot({x}, {y})"],
    ["jnp.arange({x}.shape[{axis}]) * {o}", "jnp.ones({x}.shape) + {x}",
     "jnp.full({x}.shape, {o}) * {x}", "jnp.eye({x}.shape[-1]) * {x}",
     "jnp.linspace(0, 1, {x}.shape[0])", "jnp.divmod({x}, 2)[{flag}]",
     "lax.iota('{dtype}', 3) * {o}", "jnp.full_like({x}, {o})"],
]  # fmt: skip


class Gaps(dict):
    """Fills the gaps of a template, each with a fresh draw."""

    def __init__(self, rng, values):
        self.rng, self.values = rng, values
        name = self.pick(list(values))
        self.value = values[name]
        super().__init__(x=name)

    def __missing__(self, gap):
        return getattr(self, f"draw_{gap}")()

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def draw_y(self):
        return self.pick(list(self.values))

    def draw_o(self):
        kind = self.rng.random()
        return (
            self.pick(NUMBERS if kind < 0.2 else CONSTANTS) if kind < 0.25 else self.y
        )

    @property
    def y(self):
        return self.draw_y()

    def draw_few(self):
        return self.rng.integers(-3, 5)

    def draw_flag(self):
        return self.rng.integers(2)

    def draw_dtype(self):
        return self.pick(DTYPES)

    def draw_axis(self):
        return self.rng.integers(-self.value.ndim, max(self.value.ndim, 1))

    def draw_place(self):
        return self.rng.integers(max(self.value.ndim, 1))

    def draw_axes(self):
        some = tuple(map(int, self.permuted()[: self.rng.integers(3)]))
        return self.pick([None, some, self.draw_axis()])

    def permuted(self):
        return self.rng.permutation(self.value.ndim)

    def draw_permutation(self):
        return tuple(map(int, self.permuted()))

    def draw_factors(self):
        shape = self.value.shape
        return self.pick([(-1, *shape[:1]), shape[::-1], (1, -1), (2, -1), (*shape, 1)])

    def draw_taller(self):
        return self.pick([(2,), (1, 3), (0,)]) + self.value.shape

    def draw_last(self):
        return tuple(range(1, self.value.ndim + 1))

    def draw_zero(self):
        return f"np.zeros((), {self['x']}.dtype)"

    def draw_zeros(self):
        return (0,) * self.value.ndim

    def draw_sizes(self):
        return tuple(int(self.rng.integers(size + 1)) for size in self.value.shape)

    def draw_strides(self):
        return tuple(int(k) for k in self.rng.integers(1, 3, self.value.ndim))

    def draw_padding(self):
        return [tuple(map(int, self.rng.integers(0, 3, 3))) for _ in self.value.shape]

    def draw_index(self):
        """A basic index: integers, slices, new axes, an ellipsis."""
        parts = [self.cut(size) for size in self.value.shape if self.rng.random() < 0.8]
        extra = self.pick([[], [], [], ["..."], ["None"]])
        parts[len(parts) // 2 : len(parts) // 2] = extra
        return ", ".join(parts) or "..."

    def cut(self, size):
        """An index for one axis of this size."""
        if self.rng.random() < 0.3:
            return str(self.rng.integers(-size - (size == 0), max(size, 1)))
        low, high = self.rng.integers(-size - 1, size + 2, 2)
        low, high = (self.pick(["", "", str(bound)]) for bound in (low, high))
        return f"{low}:{high}{self.pick(['', '', ':2', ':-1', ':-2'])}"


def numbers(rng, shape, dtype):
    """Return an array of numbers of no special kind."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        return rng.integers(0 if dtype[0] == "u" else -9, 10, shape).astype(dtype)
    values = rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    if dtype == "bfloat16":
        dtype = importlib.import_module("ml_dtypes").bfloat16
    return np.asarray(values).astype(dtype)


def inputs(rng, wide):
    """Return one to three arrays, whose shapes often fit each other."""
    sizes = [1, 2, 3, 2, 3] if rng.random() < 0.93 else [0, 1, 2]
    shape = tuple(int(s) for s in rng.choice(sizes, rng.integers(4)))
    like = [shape, shape, shape[1:], (1,) * len(shape), shape[-1:], ()]
    found = {}
    for name in "abc"[: rng.integers(1, 4)]:
        dtype = str(rng.choice(DTYPES))
        dtype = WIDE.get(dtype, dtype) if wide and rng.random() < 0.5 else dtype
        found[name] = numbers(rng, like[rng.integers(len(like))], dtype)
    return found


class Package:
    """One of the two packages: evaluates lines, and transforms programs."""

    def __init__(self, name):
        self.jax = importlib.import_module(name)
        self.names = {
            "np": np,
            "jax": self.jax,
            "jnp": importlib.import_module(f"{name}.numpy"),
            "lax": importlib.import_module(f"{name}.lax"),
        }
        self.run_jaxpr = importlib.import_module(f"{name}.extend.core").jaxpr_as_fun

    def function(self, lines, wanted):
        """Return the function of a dictionary that runs lines, for the names wanted."""

        def run(values):
            names = {**self.names, **values}
            for name, expression in lines:
                names[name] = eval(expression, names)
            return [names[name] for name in wanted]

        return run

    def attempt(self, f, *args):
        """Return the result, or the error."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return f(*args)
            except Exception as error:
                return error


def dtype_kind(x):
    """Return what NumPy's ``kind`` says, and ``"f"`` for bfloat16."""
    return "f" if x.dtype.name == "bfloat16" else getattr(x.dtype, "kind", "V")


def missing(x):
    """Return whether an array holds a number that is not finite."""
    return dtype_kind(x) in "fc" and not np.all(np.isfinite(np.asarray(x, complex)))


def pattern(x):
    """Return fixed numbers like `x`: tangents and cotangents are made of them."""
    return np.cos(np.arange(x.size) + 0.5).reshape(x.shape).astype(x.dtype)


def of_moving(f, values):
    """Return `f` as a function of its inexact inputs, and these."""
    moving = [name for name, x in values.items() if dtype_kind(x) in "fc"]
    still = {name: x for name, x in values.items() if name not in moving}
    primals = [values[name] for name in moving]
    return lambda *xs: f(still | dict(zip(moving, xs))), primals


def jvp(package, f, values):
    f, primals = of_moving(f, values)
    return package.jax.jvp(f, tuple(primals), tuple(map(pattern, primals)))


def vjp(package, f, values):
    f, primals = of_moving(f, values)
    outs, pullback = package.jax.vjp(
        lambda *xs: [y for y in f(*xs) if dtype_kind(y) in "fc"], *primals
    )
    return outs, pullback([pattern(y) for y in outs])


def vmap(package, f, values):
    axes, examples = {}, {}
    for i, (name, x) in enumerate(values.items()):
        axis = (i + x.size) % (x.ndim + 1)
        mapped = len(values) == 1 or (i + x.size) % 3
        axes[name] = axis if mapped or not i else None
        stacked = np.stack([x, x[..., ::-1] if x.ndim else x], axis)
        examples[name] = x if axes[name] is None else stacked
    return package.jax.vmap(f, in_axes=(axes,))(examples)


def jaxpr(package, f, values):
    closed = package.jax.make_jaxpr(f)(values)
    leaves = [package.names["jnp"].asarray(values[name]) for name in sorted(values)]
    types = [(a.shape, a.dtype.name, a.weak_type) for a in closed.out_avals]
    return types, package.run_jaxpr(closed)(*leaves)


TRANSFORMATIONS = [jvp, vjp, vmap, jaxpr]

TOLERANCES = {"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-4, "complex64": 1e-4}


def difference(ours, theirs, loose=1.0, least=1e-9):
    """Say how two results differ, or return None.

    Args:
      loose: how many times the tolerance of their type they may be apart.
      least: the tolerance of the least exact numbers that they were made of.
    """
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        same = type(ours).__name__ == type(theirs).__name__
        return None if same else f"{say(ours)}, but JAX: {say(theirs)}"
    if isinstance(theirs, list | tuple):
        pairs = zip(ours, theirs, strict=True)
        found = [difference(a, b, loose, least) for a, b in pairs]
        return next((text for text in found if text), None)
    if not hasattr(theirs, "dtype"):
        return None if ours == theirs else f"{ours}, but JAX: {theirs}"
    types = [
        (x.shape, x.dtype.name, getattr(x, "weak_type", 0)) for x in (ours, theirs)
    ]
    if types[0][1] == "void0" or theirs.dtype.itemsize == 0:
        return None if ours.shape == theirs.shape else "shapes of float0"
    if types[0] != types[1]:
        return f"{types[0]}, but JAX: {types[1]}"
    return distance(np.asarray(ours), np.asarray(theirs), loose, least)


def say(x):
    """The first line of an error; other results in full."""
    if not isinstance(x, Exception):
        return repr(x)
    return f"{type(x).__name__}: {str(x).splitlines()[0] if str(x) else ''}"


def distance(ours, theirs, loose, least=1e-9):
    """Say where two arrays differ by more than rounding, as seen from the largest."""
    if dtype_kind(theirs) in "biu":
        close = ours == theirs
    else:
        rtol = loose * max(TOLERANCES.get(theirs.dtype.name, 0), least)
        wide = complex if theirs.dtype.kind == "c" else float
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        finite = np.abs(theirs[np.isfinite(theirs)])
        atol = rtol * finite.max(initial=1.0)
        with np.errstate(all="ignore"):
            close = np.isclose(ours, theirs, rtol, atol, equal_nan=True)
    return None if np.all(close) else f"{ours}, but JAX: {theirs}"


def converted(package, x):
    """Return JAX's array as ours, of the same weak type."""
    from minijax.lax.arithmetic import astype

    x, weak = np.asarray(x), x.weak_type
    return astype(package.names["jnp"].asarray(x), x.dtype, weak)


class Comparison:
    """One random program in both packages.

    Attributes:
      lines: the program, pairs of a name and an expression.
      found: the disagreements, as texts.
      checked: how many results were compared.
    """

    def __init__(self, seed, length=5):
        self.rng = np.random.default_rng(seed)
        self.ours, self.theirs = Package("minijax"), Package("jax")
        self.lines, self.found, self.checked = [], [], 0
        with (
            self.ours.jax.enable_x64(wide := bool(seed % 2)),
            self.theirs.jax.enable_x64(wide),
        ):
            self.inputs = inputs(self.rng, wide)
            self.values = {
                name: self.theirs.names["jnp"].asarray(x)
                for name, x in self.inputs.items()
            }
            for name in "defghijklmnopq"[: 2 * length]:
                if len(self.lines) < length:
                    self.grow(name)
            self.transform()

    def grow(self, name):
        """Add a line, if JAX can run it; compare what the packages make of it."""
        group = GROUPS[self.rng.integers(len(GROUPS))]
        template = group[self.rng.integers(len(group))]
        expression = template.format_map(Gaps(self.rng, self.values))
        lines = [(name, expression)]
        own = {name: converted(self.ours, x) for name, x in self.values.items()}
        ours = self.ours.attempt(self.ours.function(lines, [name]), own)
        theirs = self.theirs.attempt(self.theirs.function(lines, [name]), self.values)
        agree = self.compare("plain", lines, self.values, ours, theirs)
        if agree and not isinstance(theirs, Exception) and theirs[0].size < 200:
            self.lines += lines
            self.values[name] = theirs[0]

    def transform(self):
        """Compare the whole program under each transformation."""
        wanted = [name for name, _ in self.lines]
        for transformation in TRANSFORMATIONS:
            ours, theirs = (
                package.attempt(
                    transformation,
                    package,
                    package.function(self.lines, wanted),
                    self.inputs,
                )
                for package in (self.ours, self.theirs)
            )
            what = transformation.__name__
            self.compare(what, self.lines, self.inputs, ours, theirs, 20.0)

    def expected(self, lines, ours, theirs):
        """Whether this is one of the differences in `book/differences.md`."""
        text = " ".join(line for _, line in lines)
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            axis = isinstance(ours, ValueError) and isinstance(theirs, IndexError)
            return axis or "lax.cum" in text
        values = self.values.values()
        if any(x.size == 0 for x in values) and ("mean" in text or "std" in text):
            return True  # 0 / 0 may be 0
        bools = any(x.dtype == bool for x in values)
        return bools and any(missing(x) for x in values)  # False * nan may be 0

    def compare(self, what, lines, values, ours, theirs, loose=1.0):
        self.checked += 1
        text = " ".join(line for _, line in lines)
        whole = len(lines) > 1
        used = {name: x for name, x in values.items() if whole or name in text}
        exact = [TOLERANCES.get(x.dtype.name, 1e-9) for x in used.values()]
        least = max(exact, default=1e-9)
        problem = self.ours.attempt(difference, ours, theirs, loose, least)
        if problem and not self.expected(lines, ours, theirs):
            text = "; ".join(f"{name} = {line}" for name, line in lines)
            types = [f"{n}: {x.dtype.name}{list(x.shape)}" for n, x in used.items()]
            self.found.append(f"{what} of [{text}] at {', '.join(types)}: {problem}")
        return not problem


def main(arguments=None):
    """Run from the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if "--control-flow" in arguments:
        control = importlib.import_module("tests.random_control")
        return control.main([word for word in arguments if word != "--control-flow"])
    options = options_of(__doc__, arguments, seed=0, count=100, length=5)
    checked = bad = 0
    for seed in range(options.seed, options.seed + options.count):
        comparison = Comparison(seed, options.length)
        checked, bad = checked + comparison.checked, bad + bool(comparison.found)
        for text in comparison.found:
            print(f"seed {seed}: {text}\n", flush=True)
    print(f"{options.count} programs, {checked} results, {bad} programs disagree")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
