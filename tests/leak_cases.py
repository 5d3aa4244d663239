"""Programs that leave a tracer behind, and programs that do not."""

KEPT = []


def keep(x):
    """Leave what stands for ``x + 1``, and return `x`."""
    KEPT.append(x + 1.0)
    return x


LEAVING = {
    "jit": lambda jax, x: jax.jit(lambda x: keep(x))(x),
    "jit in jit": lambda jax, x: jax.jit(lambda x: jax.jit(lambda y: keep(y))(x))(x),
    "before jit": lambda jax, x: jax.jit(lambda x: jax.jit(lambda y: y)(keep(x)))(x),
    "lower": lambda jax, x: jax.jit(lambda x: keep(x)).lower(x),
    "make_jaxpr": lambda jax, x: jax.make_jaxpr(lambda x: keep(x))(x),
    "eval_shape": lambda jax, x: jax.eval_shape(lambda x: keep(x), x),
    "vmap": lambda jax, x: jax.vmap(lambda x: keep(x))(x),
    "pmap": lambda jax, x: jax.pmap(lambda x: keep(x))(x[None]),
    "scan": lambda jax, x: jax.lax.scan(lambda c, a: (keep(c), a), 1.0, x),
    "map": lambda jax, x: jax.lax.map(lambda a: keep(a), x),
    "while": lambda jax, x: jax.lax.while_loop(
        lambda c: c < 3, lambda c: keep(c) + 1, 1.0
    ),
    "fori": lambda jax, x: jax.lax.fori_loop(0, 3, lambda i, c: keep(c) + 1, 1.0),
    "cond": lambda jax, x: jax.lax.cond(True, lambda c: keep(c), lambda c: c, 1.0),
    "checkpoint": lambda jax, x: jax.checkpoint(lambda x: keep(x))(x),
    "jit of grad": lambda jax, x: jax.jit(jax.grad(lambda x: keep(x).sum()))(x),
    "vmap of grad": lambda jax, x: jax.vmap(jax.grad(lambda x: keep(x)))(x),
    "jacfwd": lambda jax, x: jax.jacfwd(lambda x: keep(x))(x),
    "hessian": lambda jax, x: jax.hessian(lambda x: keep(x).sum())(x),
}
# JAX lets these go.
LEAVING_HERE = {
    "shard_map": lambda jax, x: jax.shard_map(
        lambda x: keep(x),
        mesh=jax.make_mesh((1,), ("i",)),
        in_specs=jax.P(),
        out_specs=jax.P(),
    )(x),
    "grad": lambda jax, x: jax.grad(lambda x: keep(x).sum())(x),
    "jvp": lambda jax, x: jax.jvp(lambda x: keep(x), (x,), (x,)),
    "vjp": lambda jax, x: jax.vjp(lambda x: keep(x), x),
    "linearize": lambda jax, x: jax.linearize(lambda x: keep(x), x),
    "jacrev": lambda jax, x: jax.jacrev(lambda x: keep(x))(x),
}


def product(c, a):
    return c * a, c + a


def total(jax, x):
    return jax.lax.scan(product, x[0], x)[0]


def chosen(jax, x):
    return jax.lax.cond(x[0] > 0, lambda: x.sum(), lambda: 2 * x.sum())


CLEAN = {
    "jit": lambda jax, x: jax.jit(lambda x: x * 2.0)(x),
    "jit in jit": lambda jax, x: jax.jit(lambda x: jax.jit(lambda y: y + x)(x))(x),
    "grad": lambda jax, x: jax.grad(lambda x: (x * x).sum())(x),
    "grad in grad": lambda jax, x: jax.grad(
        lambda a: jax.grad(lambda b: a * b * b)(3.0)
    )(x[0]),
    "hessian": lambda jax, x: jax.hessian(lambda x: (x**3).sum())(x),
    "vjp": lambda jax, x: jax.vjp(jax.numpy.sin, x)[1](x),
    "linearize": lambda jax, x: jax.linearize(jax.numpy.sin, x)[1](x),
    "vmap in vmap": lambda jax, x: jax.vmap(lambda a: jax.vmap(lambda b: a * b)(x))(x),
    "scan": lambda jax, x: jax.lax.scan(product, x[0], x),
    "grad of scan": lambda jax, x: jax.grad(lambda x: total(jax, x))(x),
    "jit of that": lambda jax, x: jax.jit(jax.grad(lambda x: total(jax, x)))(x),
    "closure": lambda jax, x: jax.jit(
        lambda x: jax.lax.map(lambda a: a * x[0], x)
    )(x),
    "checkpoint": lambda jax, x: jax.grad(
        lambda x: jax.checkpoint(jax.numpy.sin)(x)[0]
    )(x),
    "cond": lambda jax, x: jax.grad(lambda x: chosen(jax, x))(x),
    "relu": lambda jax, x: jax.jit(jax.grad(lambda x: jax.nn.relu(x).sum()))(x),
    "sort": lambda jax, x: jax.grad(lambda x: jax.numpy.sort(x)[0])(x),
    "solve": lambda jax, x: jax.grad(
        lambda x: jax.numpy.linalg.solve(jax.numpy.eye(3) * 2, x).sum()
    )(x),
    "random": lambda jax, x: jax.random.normal(jax.random.key(0), (3,)),
}
