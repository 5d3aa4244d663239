"""Functions with derivative rules of their own, for `minijax` and for JAX alike."""


def functions(jax):
    """Return functions of one number by name; `jax` is either package."""
    jnp, lax = jax.numpy, jax.lax

    @jax.custom_jvp
    def bent(x):
        return jnp.sin(x) * x

    @bent.defjvp
    def bent_jvp(primals, tangents):
        [x], [x_dot] = primals, tangents
        return bent(x), 2.0 * jnp.cos(x) * x_dot

    @jax.custom_vjp
    def turned(x, gain):
        return gain["a"] * jnp.sin(x)

    turned.defvjp(
        lambda x, gain: (turned(x, gain), {"x": x, "gain": gain}),
        lambda kept, ct: (ct * kept["x"], {"a": ct * 3.0 * kept["gain"]["a"]}),
    )

    @jax.custom_jvp
    def product(x, y):
        return x * y

    product.defjvps(lambda t, out, x, y: t * y * 2.0, lambda t, out, x, y: x * t)

    def powered(x, n):
        return x**n

    powered = jax.custom_jvp(powered, nondiff_argnums=(1,))

    @powered.defjvp
    def powered_jvp(n, primals, tangents):
        return powered(primals[0], n), n * 10.0 * tangents[0]

    def applied(f, x):
        return f(x)

    applied = jax.custom_vjp(applied, nondiff_argnums=(0,))
    applied.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (ct * f(x),))

    @jax.custom_jvp
    def looks(x, flag):
        return x * 2.0 if flag else x

    looks = jax.custom_jvp(looks.fun, nondiff_argnames=("flag",))
    looks.defjvp(lambda flag, p, t: (looks(*p, flag=flag), t[0] * (3.0 if flag else 1)))

    @jax.custom_jvp
    def counted(x, n):
        return x * n, n

    @counted.defjvp
    def counted_jvp(primals, tangents):
        x, n = primals
        return counted(x, n), (tangents[0] * n * 5.0, tangents[1])

    return {
        "bent": bent,
        "twice": lambda x: bent(bent(x)),
        "turned": lambda x: turned(x, {"a": 2.0}) * x,
        "both": lambda x: turned(bent(x), {"a": x}),
        "product": lambda x: product(x, x + 1.0),
        "powered": lambda x: powered(x, 3),
        "applied": lambda x: applied(lambda y: y * y, x),
        "looks": lambda x: looks(x, flag=True) + looks(x, False),
        "counted": lambda x: counted(x, 3)[0],
        "stopped": lambda x: lax.stop_gradient(x) * bent(x),
        "in a batch": lambda x: jax.vmap(turned, (0, None))(
            jnp.arange(3.0) * x, {"a": x}
        ).sum(),
        "in a scan": lambda x: lax.scan(
            lambda c, y: (bent(c) * y, turned(c, {"a": y})), x, jnp.arange(1.0, 4.0)
        )[0],
        "in a cond": lambda x: lax.cond(
            x > 0, lambda x: bent(x), lambda x: turned(x, {"a": x}), x
        ),
    }


FORWARD = {"bent", "twice", "product", "powered", "looks", "counted", "stopped"}


def transformations(jax):
    """Return transformations of functions from number to number by name."""
    jnp = jax.numpy
    return {
        "grad": jax.grad,
        "vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.ones_like(f(x)))[0],
        "jit": jax.jit,
        "checkpoint": jax.checkpoint,
        "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x * 0.5])).sum(),
        "scan": lambda f: lambda x: jax.lax.scan(
            lambda c, _: (f(c) * 0.5, None), x, None, length=2
        )[0],
        "cond": lambda f: lambda x: jax.lax.cond(x > 0.5, f, lambda x: x, x),
        "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1],
        "linearize": lambda f: lambda x: jax.linearize(f, x)[1](jnp.ones_like(x)),
        "while": lambda f: lambda x: jax.lax.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1]) * 0.5), (0, x)
        )[1],
    }


def is_possible(function, stack):
    """Whether JAX can do it: reverse rules only backwards, a while only forwards."""
    runs_forward = {"jvp", "linearize"} & {*stack}
    if runs_forward and function not in FORWARD:
        return False
    inner = stack.index("while") if "while" in stack else len(stack)
    return not {"grad", "vjp"} & {*stack[inner:]}


def programs(jax):
    """Return pairs of a function and example arguments, whose texts are compared."""
    jnp, made = jax.numpy, functions(jax)

    def leaning(w):
        h = jax.custom_jvp(lambda x: x * w)
        h.defjvp(lambda p, t: (p[0] * 2, t[0]))
        return h(3.0)

    found = {name: (f, (1.5,)) for name, f in made.items() if not name.startswith("in")}
    found |= {f"grad {k}": (jax.grad(f), a) for k, (f, a) in found.items()}
    found["closes over"] = leaning, (2.0,)
    found["vmap"] = jax.vmap(made["bent"]), (jnp.arange(3.0),)
    found["vmap of grad"] = jax.vmap(jax.grad(made["turned"])), (jnp.arange(3.0),)
    found["jit"] = jax.grad(jax.jit(made["turned"])), (1.5,)
    found["promise"] = (
        lambda x: jax.jvp(made["turned"], (x,), (1.0,)),
        (1.5,),
    )
    return found


def mistakes(jax):
    """Return functions that raise: rules that are missing, or do not fit."""
    jnp = jax.numpy

    def f(x, y):
        return x * y, x

    def g(x, y):
        return x * y

    def forward(rule, f=f, run=lambda f: jax.grad(lambda x: f(x, 2.0)[0])(1.0)):
        def call():
            decorated = jax.custom_jvp(f)
            decorated.defjvp(rule)
            return run(decorated)

        return call

    def jitted(f):
        return jax.grad(jax.jit(lambda x: f(x, 2.0)[0]))(1.0)

    def backward(fwd, bwd, run=lambda g: jax.grad(g)(1.0, 2.0)):
        def call():
            decorated = jax.custom_vjp(g)
            decorated.defvjp(fwd, bwd)
            return run(decorated)

        return call

    def fwd(x, y):
        return x * y, None

    def static_tracer():
        h = jax.custom_vjp(g, nondiff_argnums=(1,))
        h.defvjp(lambda x, y: (x * y, None), lambda y, res, ct: (ct,))
        return jax.grad(lambda x: h(x, x))(1.0)

    def partial_rules():
        jax.custom_jvp(g, nondiff_argnums=(1,)).defjvps(None)

    return {
        "no jvp": lambda: jax.custom_jvp(g)(1.0, 2.0),
        "no vjp": lambda: jax.custom_vjp(g)(1.0, 2.0),
        "no pair": forward(lambda p, t: 3),
        "other tree of tangents": forward(lambda p, t: (f(*p), (t[0],))),
        "other tree of results": forward(lambda p, t: (p[0], t[0]), run=jitted),
        "other type of results": forward(
            lambda p, t: ((p[0].astype("float16"), p[0]), t), run=jitted
        ),
        "other type of tangents": forward(lambda p, t: (f(*p), (t[0], jnp.ones(3)))),
        "another type of tangent": forward(
            lambda p, t: (g(*p), jnp.ones(3)), g, lambda f: jax.grad(f)(1.0, 2.0)
        ),
        "fwd without a pair": backward(lambda x, y: 3, lambda res, ct: (ct, ct)),
        "fwd of another tree": backward(
            lambda x, y: ([x], None),
            lambda res, ct: (ct, ct),
            lambda g: jax.grad(jax.jit(g))(1.0, 2.0),
        ),
        "fwd of another type": backward(
            lambda x, y: (jnp.ones(3), None),
            lambda res, ct: (ct, ct),
            lambda g: jax.grad(jax.jit(g))(1.0, 2.0),
        ),
        "bwd without a tuple": backward(fwd, lambda res, ct: ct),
        "bwd of another length": backward(fwd, lambda res, ct: (ct,)),
        "bwd of another shape": backward(fwd, lambda res, ct: (ct, jnp.ones(3))),
        "forward mode": backward(
            fwd, lambda res, ct: (ct, ct), lambda g: jax.jvp(g, (1.0, 2.0), (1.0, 1.0))
        ),
        "a static tracer": static_tracer,
        "defjvps beside static": partial_rules,
    }
