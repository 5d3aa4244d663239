"""Random programs of functions with derivative rules, for `minijax` and JAX alike.

A program is a chain of layers from arrays to arrays of the same shape. A layer is an
operation, or a function with rules of its own, whose inside and whose rules are chains
as well; it may stand in a jit, a vmap, a scan, a cond or a while loop. The rules are no
derivatives (they have factors of their own), so a rule that is not asked is noticed.
Two transformations go around the program.
"""

import itertools

import numpy as np

SIZES = 1, 3, 4, 5, 7, 8, 9, 15, 16, 17  # around the lanes of a vector
DTYPES = "float32 float32 float32 float16 bfloat16 weak".split()
FRAMES = "plain plain jit vmap scan cond while".split()
BOTH_WAYS = "jvp jvps jvp_tree jvp_static jvp_zeros".split()
BACKWARDS = "vjp vjp_tree vjp_static vjp_zeros vjp_remat gradient".split()
WAYS = "grad vjp jvp linearize vmap jit scan cond while curvature".split()
ORDERS = dict.fromkeys("grad vjp jvp linearize".split(), 1) | {"curvature": 2}
PAIRS = [*itertools.product(WAYS, repeat=2)]


class Program:
    """A random program, for one package.

    Args:
      jax: the package.
      seed: the same for both packages.
    """

    def __init__(self, jax, seed):
        self.jax, self.rng = jax, np.random.default_rng(seed)
        self.kinds = BOTH_WAYS + BACKWARDS * int(self.rng.integers(2))
        self.stack = PAIRS[seed % len(PAIRS)]
        self.dtype = self.pick(DTYPES)
        size = self.pick(SIZES)
        values = np.round(self.rng.uniform(0.2, 1.5, size), 2)
        weak = self.dtype == "weak"
        name = "float32" if weak else self.dtype
        self.x = float(values[0]) if weak else jax.numpy.asarray(values, name)
        self.words = []
        self.inside = self.chain(int(self.rng.integers(1, 4)), 2)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def run(self, way=lambda f: f):
        """The value, or the class of the error; `way` goes around everything."""
        f = self.inside
        for name in self.stack:
            f = getattr(self, f"around_{name}")(f)
        try:
            return np.asarray(way(f)(self.x))
        except Exception as error:
            return type(error).__name__

    def is_compared(self):
        """Whether JAX has the answer.

        In a second derivative its scan drops rules, and `optimize_remat` is refused.
        """
        orders = [ORDERS.get(name, 0) for name in self.stack]
        parts = {part for word in self.words for part in word.split("/")}
        odd = {"scan", "while", "vjp_remat"} & {*self.stack, *parts}
        return sum(orders) < 2 or not odd

    def tolerance(self):
        return 0.1 if self.dtype in ("float16", "bfloat16") else 5e-4

    def __repr__(self):
        return f"{self.dtype} {' of '.join(self.stack)}: {' '.join(self.words)}"

    # Programs.

    def chain(self, count, depth):
        """A function from an array to one like it."""
        layers = [self.layer(depth) for _ in range(count)]

        def run(x):
            for layer in layers:
                x = layer(x)
            return x

        return run

    def layer(self, depth):
        kind = self.pick(["operation", *self.kinds]) if depth else "operation"
        if kind == "operation":
            return self.operation()
        frame = self.pick(FRAMES)
        self.words.append(f"{kind}/{frame}")
        inner = self.chain(1, depth - 1)
        slope, factor = self.chain(1, depth - 1), float(self.pick([0.5, 2.0, 3.0]))
        made = getattr(self, kind)(inner, lambda x: factor * slope(x))
        return made if frame == "plain" else getattr(self, f"around_{frame}")(made)

    def operation(self):
        jnp = self.jax.numpy
        name = self.pick("sin cos tanh square halve where shift".split())
        self.words.append(name)
        own = {
            "halve": lambda x: x * 0.5 + 1,
            "where": lambda x: jnp.where(x > 0.7, x, 0.25),
            "shift": lambda x: 1 - x,
        }
        return own.get(name) or getattr(jnp, name)

    # Functions with rules.

    def jvp(self, f, slope):
        g = self.jax.custom_jvp(f)
        g.defjvp(lambda p, t: (g(*p), slope(*p) * t[0]))
        return g

    def jvps(self, f, slope):
        g = self.jax.custom_jvp(lambda x, y: f(x) * y)
        g.defjvps(lambda t, out, x, y: slope(x) * t, lambda t, out, x, y: out * t)
        return lambda x: g(x, x * 0.5)

    def jvp_tree(self, f, slope):
        g = self.jax.custom_jvp(lambda tree, k: {"y": f(tree["x"]) * k, "none": None})

        @g.defjvp
        def rule(primals, tangents):
            [tree, k], [dot, _] = primals, tangents
            return g(tree, k), {"y": slope(tree["x"]) * dot["x"] * k, "none": None}

        return lambda x: g({"x": x, "none": None}, 2)["y"]

    def jvp_static(self, f, slope):
        g = self.jax.custom_jvp(lambda h, x: h(x), nondiff_argnums=(0,))
        g.defjvp(lambda h, p, t: (g(h, *p), slope(*p) * t[0]))
        return lambda x: g(f, x)

    def jvp_zeros(self, f, slope):
        zero = self.jax.custom_derivatives.SymbolicZero
        g = self.jax.custom_jvp(lambda x, y: f(x) * y)

        def rule(primals, tangents):
            [x, y], [dot, other] = primals, tangents
            assert type(other) is zero
            return g(x, y), dot if type(dot) is zero else slope(x) * dot

        g.defjvp(rule, symbolic_zeros=True)
        return lambda x: g(x, 2)

    def vjp(self, f, slope):
        g = self.jax.custom_vjp(f)
        g.defvjp(lambda x: (g(x), x), lambda x, ct: (slope(x) * ct,))
        return g

    def vjp_tree(self, f, slope):
        g = self.jax.custom_vjp(lambda tree, k: [f(tree["x"]) * k, None])

        def fwd(tree, k):
            return g(tree, k), (tree, k, None)

        def bwd(kept, ct):
            tree, k, _ = kept
            return {"x": slope(tree["x"]) * ct[0] * k, "none": None}, None

        g.defvjp(fwd, bwd)
        return lambda x: g({"x": x, "none": None}, 3)[0]

    def vjp_static(self, f, slope):
        g = self.jax.custom_vjp(lambda x, h: h(x), nondiff_argnums=(1,))
        g.defvjp(lambda x, h: (h(x), x), lambda h, x, ct: (slope(x) * h(x) * ct,))
        return lambda x: g(x, f)

    def vjp_zeros(self, f, slope):
        g = self.jax.custom_vjp(lambda x, y: (f(x) * y, f(y)))

        def fwd(x, y):
            return g(x.value, y.value), x.value if x.perturbed else None

        def bwd(x, cts):
            zero = self.jax.custom_derivatives.SymbolicZero
            ct = cts[0]
            return None if x is None or type(ct) is zero else slope(x) * ct, None

        g.defvjp(fwd, bwd, symbolic_zeros=True)
        return lambda x: g(x, 2.0)[0]

    def vjp_remat(self, f, slope):
        g = self.jax.custom_vjp(f)
        fwd, bwd = (lambda x: (f(x), x)), (lambda x, ct: (slope(x) * ct,))
        g.defvjp(fwd, bwd, optimize_remat=True)
        return g

    def gradient(self, f, slope):
        return self.jax.custom_gradient(lambda x: (f(x), lambda ct: (slope(x) * ct,)))

    # Transformations of functions from an array to one like it.

    def around_grad(self, f):
        return self.jax.grad(lambda x: f(x).sum())

    def around_vjp(self, f):
        def pulled(x):
            out, pull = self.jax.vjp(f, x)
            return pull(self.jax.numpy.ones_like(out) * 0.5)[0]

        return pulled

    def around_jvp(self, f):
        ones = self.jax.numpy.ones_like
        return lambda x: self.jax.jvp(f, (x,), (ones(x) * 0.5,))[1]

    def around_linearize(self, f):
        ones = self.jax.numpy.ones_like
        return lambda x: self.jax.linearize(f, x)[1](ones(x) * 0.5)

    def around_curvature(self, f):
        return self.around_jvp(self.around_grad(f))

    def around_vmap(self, f):
        stack = self.jax.numpy.stack
        return lambda x: self.jax.vmap(f)(stack([x, x * 0.5]))[1]

    def around_jit(self, f):
        return self.jax.jit(f)

    def around_scan(self, f):
        def step(c, _):
            return f(c) * 0.5, None

        return lambda x: self.jax.lax.scan(step, x, None, length=2)[0]

    def around_cond(self, f):
        def choose(x):
            flag = x.astype("float32").sum() > 0.5
            return self.jax.lax.cond(flag, f, lambda x: x * 0.5, x)

        return lambda x: choose(self.jax.numpy.asarray(x))

    def around_while(self, f):
        def body(c):
            return c[0] + 1, f(c[1]) * 0.5

        return lambda x: self.jax.lax.while_loop(lambda c: c[0] < 2, body, (0, x))[1]


def agree(ours, theirs, tolerance):
    """Whether two outcomes are both errors, or close numbers of one dtype."""
    if isinstance(theirs, str) or isinstance(ours, str):
        return isinstance(ours, str) and isinstance(theirs, str)
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return False
    ours, theirs = ours.astype("float64"), theirs.astype("float64")
    scale = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=1e-3)
    return np.allclose(ours, theirs, tolerance, tolerance * scale, equal_nan=True)
