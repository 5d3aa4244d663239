"""Programs that read and write references, each with one that does without.

Both are functions of a real number, built from a module of JAX's names, so that they
run here and beside real JAX. `STACKS` are transformations to put around them.
"""


def programs(jax):
    """Return pairs of functions by name: with references, and without."""
    jnp, lax = jax.numpy, jax.lax

    def closed_over_by(wrap):
        def program(x):
            box = jax.new_ref(x * 1.0)

            def step():
                box[...] = jnp.sin(box[...]) * x

            wrap(step)()
            return box[...] + x

        return program

    def scanned(x):
        rows, total = jax.new_ref(x * jnp.arange(1.0, 4.0)), jax.new_ref(x * 0.0)

        def step(carry, row):
            row[...] = row[...] ** 2
            total[...] += jnp.sin(row[...])
            return carry * jnp.cos(row[...]), total[...]

        last, sums = lax.scan(step, x, rows)
        return last + sums.sum() + rows[1] + total[...]

    def scanned_without(x):
        def step(state, row):
            carry, total = state
            row = row**2
            total = total + jnp.sin(row)
            return (carry * jnp.cos(row), total), (total, row)

        start = x, x * 0.0
        (last, total), (sums, rows) = lax.scan(step, start, x * jnp.arange(1.0, 4.0))
        return last + sums.sum() + rows[1] + total

    def branched(x):
        one, other = jax.new_ref(x * 2.0), jax.new_ref(x * 3.0)

        def small():
            one[...] = one[...] * other[...]
            return one[...]

        def large():
            other[...] += x**2
            return x * 1.0

        out = lax.cond(x < 1.0, small, large)
        return out + jnp.sin(one[...]) * other[...]

    def branched_without(x):
        def small():
            return 6 * x**2, 6 * x**2, x * 3.0

        def large():
            return x * 1.0, x * 2.0, x * 3.0 + x**2

        out, one, other = lax.cond(x < 1.0, small, large)
        return out + jnp.sin(one) * other

    def handed_to_branches(x):
        box = jax.new_ref(x * 1.0)

        def double(box, y):
            box[...] *= 2.0
            return y

        def square(box, y):
            box[...] = box[...] ** 2 * y
            return y * y

        return lax.switch(jnp.int32(x > 1), [double, square], box, x) * box[...]

    def handed_without(x):
        branches = [lambda y: y * 2 * x, lambda y: y * y * x**2 * y]
        return lax.switch(jnp.int32(x > 1), branches, x)

    def counted(x):
        places = jax.new_ref(jnp.zeros(4) * x)

        def step(i, carry):
            places[i] = carry * x
            jax.ref.addupdate(places, 0, jnp.sin(carry))
            return carry * 1.5

        return lax.fori_loop(0, 4, step, x * 1.0) * places[...].sum() + places[2:].min()

    def counted_without(x):
        def step(i, state):
            carry, places = state
            places = places.at[i].set(carry * x).at[0].add(jnp.sin(carry))
            return carry * 1.5, places

        last, places = lax.fori_loop(0, 4, step, (x * 1.0, jnp.zeros(4) * x))
        return last * places.sum() + places[2:].min()

    def nested(x):
        box, count = jax.new_ref(x * 1.0), jax.new_ref(0)

        @jax.jit
        def inner(scale):
            box[...] = jnp.sin(box[...]) * scale
            count[...] += 1

        def step(carry, _):
            lax.cond(carry > 0, lambda: inner(carry), lambda: inner(x))
            return carry * box[...], None

        last, _ = lax.scan(step, x * 1.0, None, length=3)
        return last + box[...] * count[...]

    def nested_without(x):
        def step(state, _):
            carry, box = state
            box = jnp.sin(box) * jnp.where(carry > 0, carry, x)
            return (carry * box, box), None

        (last, box), _ = lax.scan(step, (x * 1.0, x * 1.0), None, length=3)
        return last + box * 3

    def mapped(x):
        def one(box, y):
            box[...] = jnp.sin(box[...]) * y
            return box[...] * x

        box = jax.new_ref(x * jnp.ones((2, 3)))
        outs = jax.vmap(one, in_axes=(1, 0))(box, jnp.arange(3.0))
        return outs.sum() + box[1, 2]

    def mapped_without(x):
        box = jnp.sin(x * jnp.ones((2, 3))) * jnp.arange(3.0)
        return (box * x).sum() + box[1, 2]

    def step(x):
        return jnp.sin(x) * x + x

    pairs = {
        "call": (closed_over_by(lambda f: f), step),
        "jit": (closed_over_by(jax.jit), step),
        "jit jit": (closed_over_by(lambda f: jax.jit(jax.jit(f))), step),
        "scan": (scanned, scanned_without),
        "cond": (branched, branched_without),
        "switch": (handed_to_branches, handed_without),
        "fori": (counted, counted_without),
        "nested": (nested, nested_without),
        "vmap": (mapped, mapped_without),
    }
    return pairs


def stacks(jax):
    """Return transformations of functions of a number, by name."""
    xs = jax.numpy.array([0.7, 1.3])
    return {
        "call": lambda f: lambda x: f(x),
        "jit": jax.jit,
        "grad": jax.grad,
        "jit grad": lambda f: jax.jit(jax.grad(f)),
        "grad jit": lambda f: jax.grad(jax.jit(f)),
        "jvp": lambda f: lambda x: jax.jvp(f, (x,), (1.0,)),
        "vmap": lambda f: lambda x: jax.vmap(f)(x * xs),
        "vmap grad": lambda f: lambda x: jax.vmap(jax.grad(f))(x * xs),
        "grad vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x * xs).sum()),
        "jit vmap jit grad": lambda f: jax.jit(
            lambda x: jax.vmap(jax.jit(jax.grad(f)))(x * xs)
        ),
        "grad grad": lambda f: jax.grad(jax.grad(f)),
        "jvp grad": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (1.0,)),
        "linearize": lambda f: lambda x: jax.linearize(f, x)[1](1.0),
        "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
        "map": lambda f: lambda x: jax.lax.map(f, x * xs),
        "scan grad": lambda f: (
            lambda x: jax.lax.scan(
                lambda c, y: (c + jax.grad(f)(y), None), 0.0, x * xs
            )[0]
        ),
    }
