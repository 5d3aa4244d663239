"""Functions with forgetful calls in them, for `minijax` and for JAX alike."""

from functools import partial
from importlib import import_module

import numpy as np


def functions(jax):
    """Return functions of one number by name; `jax` is either package."""
    jnp, lax = jax.numpy, jax.lax
    remat, policies = jax.checkpoint, jax.checkpoint_policies
    table = jnp.arange(3.0)

    def wave(x):
        return jnp.sin(jnp.sin(x) * x)

    @jax.custom_jvp
    def bent(x):
        return jnp.sin(x) * x

    bent.defjvps(lambda x_dot, out, x: 2.0 * jnp.cos(x) * x_dot)

    @jax.custom_vjp
    def turned(x):
        return jnp.sin(x)

    turned.defvjp(lambda x: (turned(x), x), lambda x, ct: (3.0 * ct * x,))

    def loop(body):
        return lambda x: lax.scan(body, x, table)[0]

    def until(f):
        def run(x):
            return lax.while_loop(
                lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x)
            )[1]

        return run

    def step(c, y):
        return jnp.tanh(c * y) + c, None

    return {
        "wave": remat(wave),
        "twice": lambda x: remat(wave)(remat(wave)(x)),
        "nested": remat(lambda x: remat(wave)(x) * x),
        "closed over": lambda x: remat(lambda y: (jnp.sin(y * x) * table).sum())(2.0),
        "constant": remat(lambda x: (jnp.sin(table * x) * table).sum()),
        "several": lambda x: sum(remat(lambda a, b: (a * b, jnp.sin(a), 2.0))(x, x)),
        "tree": lambda x: remat(lambda d, k: d["a"] * jnp.sin(k))({"a": x}, k=x),
        "static": lambda x: remat(lambda x, n: x**n, static_argnums=1)(x, 3),
        "integer": lambda x: remat(lambda x, n: jnp.sin(x) * n)(x, 3),
        "identity": remat(lambda x: x),
        "jit inside": remat(lambda x: jax.jit(wave)(x) * x),
        "jit outside": jax.jit(remat(wave)),
        "everything": remat(wave, policy=policies.everything_saveable),
        "everything of jit": remat(
            lambda x: jax.jit(wave)(x) * x, policy=policies.everything_saveable
        ),
        "unprotected": remat(wave, prevent_cse=False),
        "custom jvp": remat(lambda x: bent(bent(x))),
        "in custom jvp": lambda x: bent(remat(bent)(x)),
        "custom vjp": remat(lambda x: turned(jnp.sin(turned(x)))),
        "in a batch": lambda x: jax.vmap(remat(wave))(table * x).sum(),
        "batch inside": remat(lambda x: jax.vmap(wave)(table * x).sum()),
        "in a scan": loop(remat(step)),
        "scan inside": remat(loop(step)),
        "in a while": until(remat(wave)),
        "while inside": remat(until(wave)),
        "in a cond": lambda x: lax.cond(x > 0.0, remat(wave), jnp.cos, x),
        "cond inside": remat(lambda x: lax.cond(x > 0.0, wave, jnp.cos, x)),
        "gradient inside": remat(lambda x: jax.grad(wave)(x) * x),
        "barrier": lambda x: lax.optimization_barrier((jnp.sin(x), x))[0] * x,
    }


def is_possible(name, stack):
    """Whether JAX can do it: a while only forwards, reverse rules only backwards."""
    forwards, backwards = {"jvp", "linearize"}, {"grad", "vjp"}
    if name == "custom vjp" and forwards & {*stack}:
        return False
    inner = stack.index("while") if "while" in stack else len(stack)
    inner = 0 if name in ("in a while", "while inside") else inner
    return not backwards & {*stack[inner:]}


def programs(jax):
    """Return pairs of a function and example arguments, whose texts are compared."""
    jnp, made = jax.numpy, functions(jax)
    skip = {"nested", "everything", "everything of jit", "unprotected"}
    found = {name: (f, (1.5,)) for name, f in made.items() if name not in skip}
    found["unprotected"] = jax.checkpoint(jnp.sin, prevent_cse=False), (1.5,)
    reverse = {
        name: (jax.grad(f), args)
        for name, (f, args) in found.items()
        if is_possible(name, ("grad",)) and "inside" not in name
    }
    found |= {f"grad {name}": pair for name, pair in reverse.items()}
    found["vmap"] = jax.vmap(made["wave"]), (jnp.arange(3.0),)
    found["vmap of grad"] = jax.vmap(jax.grad(made["wave"])), (jnp.arange(3.0),)
    found["grad of grad"] = jax.grad(jax.grad(made["wave"])), (1.5,)
    found |= {f"flags, {k}": pair for k, pair in protected(jax).items()}
    found["jvp"] = lambda x, t: jax.jvp(made["wave"], (x,), (t,)), (1.5, 1.0)
    return found


def protected(jax):
    """Return pairs of a function and arguments, where flags protect some of these."""
    jnp, found = jax.numpy, {}
    for flags in [(True, False), (False, True), [False, False], (False, {"a": True})]:
        f = jax.checkpoint(lambda x, d: jnp.sin(x) * d["a"], prevent_cse=flags)
        found[f"{flags}"] = f, (1.5, {"a": 0.5})
        found[f"{flags}, slopes"] = jax.grad(f, (0, 1)), (1.5, {"a": 0.5})
        found[f"{flags}, one slope"] = jax.grad(f, 1), (1.5, {"a": 0.5})
        stacked = jnp.arange(3.0), {"a": jnp.ones(3)}
        found[f"{flags}, batch"] = jax.vmap(jax.grad(f)), stacked
        found[f"{flags}, rates"] = partial(jax.jvp, f), (stacked, stacked)
    kept = jax.checkpoint_policies.everything_saveable
    f = jax.checkpoint(lambda x, y: jnp.sin(x) * y, prevent_cse=(0, 1), policy=kept)
    found["with a policy"] = jax.grad(f, (0, 1)), (1.5, 0.5)
    f = jax.checkpoint(lambda x, k: jnp.sin(x) * k, prevent_cse=(False, True))
    found["by name"] = jax.grad(lambda x: f(x, k=x)), (1.5,)
    return found


def networks(jax):
    """Return a function for each policy; what they keep is compared."""
    jnp, policies = jax.numpy, jax.checkpoint_policies
    named = import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name

    def network(w, x):
        hidden = named(jnp.tanh(x @ w), "hidden")
        hidden = jnp.sin(named(hidden @ w, "second"))
        return jnp.sin(hidden @ w).sum()

    chosen = {
        "none": None,
        "everything": policies.everything_saveable,
        "nothing": policies.nothing_saveable,
        "dots": policies.dots_saveable,
        "checkpoint dots": policies.checkpoint_dots,
        "dots without batch": policies.dots_with_no_batch_dims_saveable,
        "the same": policies.checkpoint_dots_with_no_batch_dims,
        "hidden": policies.save_only_these_names("hidden"),
        "no such name": policies.save_only_these_names("other"),
        "all but hidden": policies.save_any_names_but_these("hidden"),
        "anything but hidden": policies.save_anything_except_these_names("hidden"),
        "both": policies.save_from_both_policies(
            policies.save_only_these_names("second"), policies.nothing_saveable
        ),
    }
    found = {k: jax.checkpoint(network, policy=policy) for k, policy in chosen.items()}
    loops = {"dots": policies.dots_saveable, "nothing": policies.nothing_saveable}
    loops["second"] = policies.save_only_these_names("second")

    def recurrent(w, x):
        def step(x, _):
            hidden = named(jnp.sin(x @ w), "first")
            return named(jnp.sin(hidden), "second"), None

        return jax.lax.scan(step, x, None, length=4)[0].sum()

    def nested(w, x):
        return jax.lax.scan(lambda x, _: (x + recurrent(w, x), None), x, length=2)[0]

    def branching(w, x):
        def long():
            return jnp.sin(named(jnp.sin(x @ w), "second") @ w)

        return jax.lax.cond(x[0, 0] > 0, long, lambda: jnp.cos(x @ w)).sum()

    def choosing(w, x):
        branches = [lambda: branching(w, x), lambda: recurrent(w, x), lambda: x[0, 0]]
        return jax.lax.switch(jnp.int32(x[0, 1]), branches)

    for name, policy in loops.items():
        found[f"branch, {name}"] = jax.checkpoint(branching, policy=policy)
        found[f"branches, {name}"] = jax.checkpoint(choosing, policy=policy)
        found[f"loop, {name}"] = jax.checkpoint(recurrent, policy=policy)
        found[f"loops, {name}"] = jax.checkpoint(nested, policy=policy)
    return found


def mistakes(jax):
    """Return calls that raise, by name."""
    remat = jax.checkpoint

    def both(*values):
        policy = jax.checkpoint_policies.save_from_both_policies(
            *(lambda *_, v=v, **__: v for v in values)
        )
        return jax.grad(remat(lambda x: jax.numpy.sin(x), policy=policy))(1.0)

    return {
        "concrete": lambda: remat(lambda x: x, concrete=True),
        "prevent_cse": lambda: remat(lambda x: x, prevent_cse=1),
        "static out of range": lambda: remat(lambda x: x, static_argnums=3)(1.0),
        "static not integers": lambda: remat(lambda x: x, static_argnums=[0])(1.0),
        "both policies": lambda: both(True, 1),
    }


def random_program(jax, rng):
    """Return a function of a vector, made of steps that choices of `rng` take."""
    jnp, lax = jax.numpy, jax.lax
    policies = jax.checkpoint_policies
    chosen = [None, policies.everything_saveable, policies.dots_saveable]

    def made(depth):
        kind = rng.integers(10 if depth else 4)
        scale = float(rng.uniform(0.5, 1.5))
        if kind < 4:
            return [
                lambda x: jnp.sin(scale * x),
                lambda x: x * jnp.tanh(x + scale),
                lambda x: jnp.dot(jnp.outer(x, x), x) * 0.1,
                lambda x: jnp.exp(-x * x) + scale,
            ][kind]
        inner, other = made(depth - 1), made(depth - 1)
        policy, protected = chosen[rng.integers(3)], bool(rng.integers(2))
        forgetful = jax.checkpoint(inner, policy=policy, prevent_cse=protected)
        return [
            lambda x: other(forgetful(x)),
            lambda x: forgetful(x) * other(x),
            jax.jit(lambda x: forgetful(other(x))),
            lambda x: lax.scan(lambda c, y: (forgetful(c) * y, None), x, x)[0],
            lambda x: lax.cond(x.sum() > scale, forgetful, other, x),
            lambda x: jax.vmap(forgetful)(jnp.stack([x, scale * x])).sum(0),
        ][kind - 4]

    return made(3)


def check_random(jax, other, rng):
    """Compare a random program of two packages: value, gradient, second derivative."""
    seed, point = rng.integers(1 << 31), rng.normal(size=3).astype("float32")
    answers = []
    for package in (jax, other):
        f = random_program(package, np.random.default_rng(seed))
        slope = package.grad(lambda x, f=f: f(x).sum())

        def curve(x, slope=slope, package=package):
            return package.jvp(slope, (x,), (x,))[1]

        results = [g(point) for g in (f, slope, curve)]
        results += [package.jit(slope)(point), package.jit(curve)(point)]
        answers.append(list(map(np.asarray, results)))
    for ours, theirs in zip(*answers, strict=True):
        scale = 1e-6 + np.abs(theirs).max()
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=2e-4)
