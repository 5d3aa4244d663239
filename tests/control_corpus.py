"""Programs of the corpus that stage out and that contain control flow.

`of_scalars`, `of_vectors` and `of_matrices` are further programs for `tests.corpus`.
`wrappers` are control flow as transformations: each makes of a function of an array
another such function, which chooses or repeats it. `plain` has a twin for each of them
that is straight-line code and computes the same, by unrolling and choosing.
"""

import numpy as np

STEPS = np.array([1.0, 0.9])
POINTS = np.array([[0.1, 0.4, 0.2], [0.5, 0.3, 0.6]])


def turns(jnp, x):
    """A predicate of an array that changes along the mapped axes of the corpus."""
    return jnp.sin(30.0 * x.ravel()[0]) > 0


def result_of(jax, f, x):
    """Return zeros of the type of ``f(x)``."""
    y = jax.eval_shape(f, x)
    return jax.numpy.zeros(y.shape, y.dtype)


def wrappers(jax):
    """Return control flow as functions from functions to functions."""
    jnp, lax = jax.numpy, jax.lax

    def cond(f):
        def chosen(x):
            zero = result_of(jax, f, x)
            return lax.cond(turns(jnp, x), f, lambda z: zero + jnp.sin(z).sum(), x)

        return chosen

    def scan(f):
        def looped(x):
            def body(c, a):
                y = f(c * a)
                return 0.5 * c + 0.1 * jnp.tanh(y.sum()), y

            c, ys = lax.scan(body, x, STEPS.astype(x.dtype))
            return ys + c.mean()

        return looped

    def loop(f):
        def looped(x):
            last = jnp.where(turns(jnp, x), 3, 1)

            def body(state):
                i, c, y = state
                return i + 1, 0.9 * c, 0.5 * y + f(c)

            start = 0, x, result_of(jax, f, x)
            return lax.while_loop(lambda state: state[0] < last, body, start)[2]

        return looped

    def fori(f):
        def looped(x):
            def body(i, state):
                c, y = state
                return 0.9 * c, 0.5 * y + (i + 1) * f(c)

            return lax.fori_loop(0, 2, body, (x, result_of(jax, f, x)))[1]

        return looped

    return {"cond": cond, "scan": scan, "while": loop, "fori": fori, "jit": jax.jit}


def plain(jax):
    """Return what `wrappers` mean, without control flow."""
    jnp = jax.numpy

    def cond(f):
        def chosen(x):
            y = f(x)
            return jnp.where(turns(jnp, x), y, jnp.zeros_like(y) + jnp.sin(x).sum())

        return chosen

    def scan(f):
        def unrolled(x):
            c, ys = x, []
            for a in STEPS.astype(x.dtype):
                ys.append(f(c * a))
                c = 0.5 * c + 0.1 * jnp.tanh(ys[-1].sum())
            return jnp.stack(ys) + c.mean()

        return unrolled

    def loop(f):
        def unrolled(x):
            last, c, y = jnp.where(turns(jnp, x), 3, 1), x, result_of(jax, f, x)
            for i in range(3):
                y = jnp.where(i < last, 0.5 * y + f(c), y)
                c = 0.9 * c
            return y

        return unrolled

    def fori(f):
        return lambda x: 0.5 * f(x) + 2.0 * f(0.9 * x)

    return {"cond": cond, "scan": scan, "while": loop, "fori": fori}


def of_scalars(jax, jnp):
    """Programs of one number."""
    lax = jax.lax
    square = jax.jit(lambda x: x * x)

    def trees(x):
        operand = {"a": x, "b": (2.0 * x, None), "n": 3}

        def yes(t):
            return [t["a"] * t["b"][0], {"n": t["n"]}]

        def no(t):
            return [jnp.cos(t["a"]), {"n": t["n"] + 1}]

        y, rest = lax.cond(x < 0.75, yes, no, operand)
        return y * rest["n"]

    def captured(x):
        y, z = jnp.sin(x), x * x
        return lax.cond(x > 0.75, lambda: y * 2.0, lambda: z + y)

    def weak_branches(x):
        return lax.cond(x > 0.75, lambda: 1.0, lambda: 2.0) * x

    def nested(x):
        def inner(a):
            return lax.cond(a > 1.5, jnp.sin, lambda b: b * x, a)

        return lax.cond(x > 0.75, inner, jnp.exp, 2.0 * x)

    def three(x):
        branches = [jnp.sin, lambda a: a * x, lambda a: a**3 + 1.0]
        index = jnp.floor(20.0 * x).astype(int) - 13
        return lax.switch(index, branches, 2.0 * x)

    def outside(x):
        branches = [jnp.sin, jnp.cos]
        return lax.switch(7, branches, x) + lax.switch(-3, branches, x)

    def newton(x):
        def going(state):
            return jnp.abs(state[0] * state[0] - 2.0) > 1e-3

        def improve(state):
            y, n = state
            return 0.5 * (y + 2.0 / y), n + 1

        y, n = lax.while_loop(going, improve, (1.0 + x, 0))
        return y * n

    def power(x):
        count = jnp.floor(20.0 * x).astype(int) - 12
        return lax.while_loop(
            lambda s: s[1] < count, lambda s: (s[0] * x, s[1] + 1), (x, 0)
        )[0]

    def never(x):
        return lax.while_loop(lambda y: y < 0.0, lambda y: y * x, x)

    @jax.jit  # where the count is known, it is as good as a Python number
    def dynamic(x):
        count = jnp.floor(20.0 * x).astype(int) - 12
        return lax.fori_loop(0, count, lambda i, y: jnp.sin(y) + i * x, x)

    def double(x):
        def outer(i, y):
            return lax.fori_loop(0, 2, lambda j, z: z * x + i * j, y)

        return lax.fori_loop(1, 3, outer, x)

    def branch_in_loop(x):
        def body(y, i):
            odd = i % 2 == 1
            return lax.cond(odd, jnp.sin, lambda a: a * x, y), y

        y, ys = lax.scan(body, x, jnp.arange(3))
        return y + ys

    def loop_in_branch(x):
        def loop(a):
            return lax.fori_loop(0, 3, lambda i, b: jnp.sin(b) * x, a)

        return lax.cond(x > 0.75, loop, lambda a: a * a, x)

    def loop_in_loop(x):
        def body(y, a):
            z = lax.while_loop(lambda s: s < 2.0, lambda s: s * (1.5 + a), y)
            return 0.1 * z, z

        return lax.scan(body, x, np.array([0.1, 0.3]))[1]

    def scan_in_while(x):
        def body(state):
            i, y = state
            y, _ = lax.scan(lambda c, a: (jnp.sin(c) * a, None), y, STEPS)
            return i + 1, y + x

        return lax.while_loop(lambda state: state[0] < 2, body, (0, x))[1]

    def derivative_inside(x):
        def body(c, a):
            return jax.grad(lambda z: jnp.sin(z) * a)(c), jax.jvp(square, (c,), (x,))[1]

        c, ys = lax.scan(body, x, STEPS)
        return c * ys

    def static(x):
        def scaled(x, n, *, shift=False):
            return n * x if shift else x**n

        f = jax.jit(scaled, static_argnums=1, static_argnames="shift")
        return f(x, 2) + f(x, 3, shift=True) + f(x, 2)

    def closing(x):
        y = jnp.sin(x)
        return jax.jit(lambda z: z * y + x)(2.0)

    def odd_results(x):
        f = jax.jit(lambda a, b: (b, a, 3.0, jnp.arange(2.0), None, a * b))
        b, a, three, pair, nothing, product = f(x, 2.0 * x)
        assert nothing is None and jax.jit(lambda a: None)(x) is None
        return b * three + a * pair + product

    def keywords(x):
        f = jax.jit(lambda d, *, k: {"y": d["a"] * k[0] - k[1]})
        return f({"a": x, "unused": 2.0 * x}, k=[x, jnp.cos(x)])["y"]

    def integers(x):
        def body(carry, a):
            n, y = carry
            return (n + 1, y * n), (n, a)

        (n, y), (ns, _) = lax.scan(body, (1, x), None, length=3)
        return y * n + ns

    def closed_over_in_while(x):
        y = jnp.sin(x)
        return lax.while_loop(lambda s: s * y < 2.0, lambda s: s + x * y + 1.0, x)

    return {
        "cond": lambda x: lax.cond(x > 0.75, jnp.sin, lambda a: a * a, x),
        "cond of trees": trees,
        "cond of nothing": captured,
        "cond known": lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
        "cond of weak numbers": weak_branches,
        "cond in cond": nested,
        "cond forgets": lambda x: lax.cond(x > 0.75, lambda a: 3.0, jnp.sin, x),
        "switch": three,
        "switch outside": outside,
        "newton while": newton,
        "while power": power,
        "while never": never,
        "while closes": closed_over_in_while,
        "fori": lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + i * x, x),
        "fori dynamic": dynamic,
        "fori in fori": double,
        "fori of nothing": lambda x: lax.fori_loop(3, 3, lambda i, y: y * x, x),
        "cond in scan": branch_in_loop,
        "fori in cond": loop_in_branch,
        "while in scan": loop_in_loop,
        "scan in while": scan_in_while,
        "derivative in scan": derivative_inside,
        "integer carry": integers,
        "jit": lambda x: square(jnp.sin(x)) * x,
        "jit twice": lambda x: square(x) + square(square(x)),
        "jit of jit": jax.jit(lambda x: jax.jit(jnp.sin)(x) * square(x)),
        "jit static": static,
        "jit closing": closing,
        "jit results": odd_results,
        "jit keywords": keywords,
    }


def of_vectors(jax, jnp):
    """Programs of three numbers."""
    lax = jax.lax
    weights = np.array([[0.2, -0.5, 1.0], [0.7, 0.3, -0.4], [0.1, 0.6, 0.5]])

    def running(x):
        total, partial = lax.scan(lambda c, a: (c + a * a, c * a), 0.0, x)
        return partial * total

    def recurrent(x):
        def cell(h, p):
            h = jnp.tanh(weights @ h + p)
            return h, h.sum()

        h, sums = lax.scan(cell, x, POINTS)
        return h * sums[0] + sums[1]

    def carried_trees(x):
        def body(carry, item):
            carry = {"s": carry["s"] + item["a"], "p": carry["p"] * jnp.cos(item["b"])}
            return carry, (carry["p"], {"d": item["a"] - carry["s"]})

        carry, (ps, rest) = lax.scan(
            body, {"s": 0.0 * x[0], "p": 1.0}, {"a": x, "b": x * x}
        )
        return ps + rest["d"] * carry["s"]

    def backwards(x):
        return lax.scan(lambda c, a: (c * 0.5 + a, c * a), 1.0, x, reverse=True)[1]

    def no_carry(x):
        return lax.scan(lambda c, a: (c, jnp.sin(a) * x), None, x)[1]

    def no_items(x):
        c, ys = lax.scan(lambda c, _: (jnp.sin(c) * x, c[0]), x, None, length=2)
        return c + ys.sum()

    def empty(x):
        c, ys = lax.scan(lambda c, a: (c * a.sum(), c), x, jnp.ones((0, 3)) * x)
        return c + ys.sum(0)

    def unrolled(x):
        return lax.scan(lambda c, a: (c * jnp.cos(a), c + a), 1.0, x, unroll=2)[1]

    def within(x):
        def outer(c, a):
            d, ys = lax.scan(lambda d, b: (d + jnp.sin(a * b), d * c), a, x)
            return c + 0.1 * d, ys.sum()

        c, ys = lax.scan(outer, 1.0, x)
        return ys * c

    def invariant(x):
        def body(c, a):
            return jnp.tanh((weights * x) @ c) + jnp.exp(x) * a, None

        return lax.scan(body, x, STEPS)[0]

    def two_speeds(x):
        """One part of the state depends on the input at once, one later, one never."""

        def body(carry, _):
            a, b, c = carry
            return (a + 1.0, b + a * x, jnp.sin(b) + c), c

        (_, _, c), cs = lax.scan(body, (0.0, jnp.ones(3), jnp.zeros(3)), None, 3)
        return c + cs.sum(0)

    def talking_scan(x):
        def step(a):
            def body(c, k):
                return c + lax.pmean(jnp.sin(c) * k, "i"), lax.psum(a, "i")

            c, sums = lax.scan(body, a, STEPS)
            return c + sums[0]

        return jax.vmap(step, axis_name="i")(x)

    def talking_jit(x):
        def centred(a):
            return jax.jit(lambda b: b - lax.pmean(b * b, "i"))(a)

        return jax.vmap(centred, axis_name="i")(x)

    def talking_cond(x):
        def part(a):
            total = lax.psum(a, "i")
            return lax.cond(total > 2.3, lambda b: b * lax.psum(2.0, "i"), jnp.sin, a)

        return jax.vmap(part, axis_name="i")(x)

    def talking_fori(x):
        def part(a):
            def body(_, b):
                return b - lax.all_gather(b, "i").max() + a * a

            return lax.fori_loop(0, 2, body, a)

        return jax.vmap(part, axis_name="i")(x)

    def batched_branch(x):
        return jax.vmap(lambda a: lax.cond(a > 0.5, jnp.sin, lambda b: b * x[0], a))(x)

    def batched_switch(x):
        branches = [jnp.sin, jnp.cos, lambda a: a * x[1]]
        return jax.vmap(lambda i, a: lax.switch(i, branches, a))(np.array([2, 0, 1]), x)

    def batched_trips(x):
        def collatz(n, a):
            def body(s):
                return jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] * a + 0.1

            return lax.while_loop(lambda s: s[0] != 1, body, (n, a))[1]

        return jax.vmap(collatz)(np.array([3, 1, 4]), x)

    def batched_scan(x):
        def total(a, xs):
            return lax.scan(lambda c, b: (c * b + a, c), 1.0, xs)[1]

        return jax.vmap(total, in_axes=(0, None), out_axes=1)(x, x)

    def mapped_pairs(x):
        return lax.map(lambda t: t[0] * jnp.sin(t[1]["k"]), (x, {"k": x * x}))

    def pairs(x):
        def compose(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        return lax.associative_scan(compose, (x, jnp.cos(x)))[1]

    def apply(x):
        f = jax.vmap(jax.jit(lambda a, b: a * b.sum()), in_axes=(0, None))
        return f(x, x)

    return {
        "scan": running,
        "scan of a cell": recurrent,
        "scan of trees": carried_trees,
        "scan reverse": backwards,
        "scan without carry": no_carry,
        "scan without items": no_items,
        "scan of nothing": empty,
        "scan unrolled": unrolled,
        "scan in scan": within,
        "scan with invariants": invariant,
        "scan at two speeds": two_speeds,
        "psum in scan": talking_scan,
        "pmean in jit": talking_jit,
        "psum in cond": talking_cond,
        "all_gather in fori": talking_fori,
        "batched cond": batched_branch,
        "batched switch": batched_switch,
        "batched while": batched_trips,
        "batched scan": batched_scan,
        "map": lambda x: lax.map(lambda a: jnp.sin(a) * x, x),
        "map of trees": mapped_pairs,
        "map in batches": lambda x: lax.map(lambda a: a * x, x, batch_size=2),
        "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x),
        "associative_scan of pairs": pairs,
        "batched jit": apply,
    }


def of_matrices(jax, jnp):
    """Programs of a matrix, two by three."""
    lax = jax.lax

    def rows(x):
        def body(c, row):
            return jnp.tanh(c @ row) * row, c[:2] + row[1:]

        return lax.scan(body, x[0], x)[1]

    def layers(x):
        def body(h, w):
            return jnp.tanh(0.1 * w * h @ (x.T @ x)), None

        return lax.scan(body, x, jnp.stack([x, 2.0 * x]))[0]

    def until(x):
        return lax.while_loop(lambda y: y.sum() < 40.0, lambda y: y * 1.5 + x, x)

    def columns(x):
        return lax.associative_scan(jnp.add, x, axis=1, reverse=True) * x

    return {
        "scan over rows": rows,
        "scan of products": layers,
        "while of matrices": until,
        "associative_scan of rows": columns,
        "map over rows": lambda x: lax.map(lambda row: row.sum() * row, x),
        "cond of matrices": lambda x: lax.cond(
            turns(jnp, x), lambda a: a @ a.T, lambda a: jnp.eye(2) * a[0, 0], x
        ),
    }
