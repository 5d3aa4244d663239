"""What users write with rules of their own, for `minijax` and for JAX alike.

The subjects are those of JAX's public documentation of derivative rules and of
batching rules; the programs are written anew.
"""

import functools
import importlib
import json
import re
from pathlib import Path

import numpy as np


def newcomers(jax):
    """Return functions without arguments, by name, that return trees of numbers."""
    jnp, lax = jax.numpy, jax.lax

    def log1pexp():
        @jax.custom_jvp
        def softplus(x):
            return jnp.log(1.0 + jnp.exp(x))

        @softplus.defjvp
        def softplus_jvp(primals, tangents):
            [x], [x_dot] = primals, tangents
            return softplus(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * x_dot

        xs = jnp.array([-5.0, 0.0, 3.0, 100.0])
        slopes = jax.jit(jax.vmap(jax.grad(softplus)))(xs)
        return slopes, jax.vmap(jax.grad(jax.grad(softplus)))(xs[:3])

    def domain_edge():
        @jax.custom_jvp
        def ratio(x):
            return x / (1.0 + jnp.sqrt(x))

        ratio.defjvps(
            lambda t, out, x: t * (jnp.sqrt(x) + 2) / (2 * (jnp.sqrt(x) + 1) ** 2)
        )
        return jax.grad(ratio)(0.0), jax.vmap(jax.grad(ratio))(jnp.array([0.0, 4.0]))

    def clip_gradient():
        @jax.custom_vjp
        def clipped(x, low, high):
            return x

        clipped.defvjp(
            lambda x, low, high: (x, (low, high)),
            lambda bounds, ct: (jnp.clip(ct, *bounds), None, None),
        )

        def f(x):
            return jnp.sin(clipped(x, -0.75, 0.75))

        xs = jnp.linspace(0.0, 6.0, 7)
        return jax.vmap(jax.grad(f))(xs), jax.vmap(jax.grad(jax.grad(f)))(xs)

    def fixed_point():
        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def solve(f, a, guess):
            def far(pair):
                return jnp.abs(pair[0] - pair[1]) > 1e-6

            def step(pair):
                return pair[1], f(a, pair[1])

            return lax.while_loop(far, step, (guess, f(a, guess)))[1]

        def fwd(f, a, guess):
            x = solve(f, a, guess)
            return x, (a, x)

        def bwd(f, kept, ct):
            a, x = kept
            _, pull_a = jax.vjp(lambda a: f(a, x), a)

            def again(packed, u):
                a, x, ct = packed
                _, pull_x = jax.vjp(lambda x: f(a, x), x)
                return ct + pull_x(u)[0]

            return *pull_a(solve(again, (a, x, ct), ct)), jnp.zeros_like(x)

        solve.defvjp(fwd, bwd)

        def root(a):
            return solve(lambda a, x: 0.5 * (x + a / x), a, a)

        twice = jax.grad(jax.grad(root))(2.0)
        return root(2.0), jax.grad(root)(2.0), twice, jax.jit(jax.grad(root))(2.0)

    def newton():
        def root_of(f, x):
            f, moving = jax.closure_convert(f, x)
            return solve(f, x, *moving)

        @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
        def solve(f, x, *moving):
            def step(i, x):
                y, slope = jax.jvp(lambda x: f(x, *moving), (x,), (1.0,))
                return x - y / slope

            return lax.fori_loop(0, 20, step, x)

        def fwd(f, x, *moving):
            x = solve(f, x, *moving)
            return x, (x, moving)

        def bwd(f, kept, ct):
            x, moving = kept
            _, slope = jax.jvp(lambda x: f(x, *moving), (x,), (1.0,))
            _, pull = jax.vjp(lambda *moving: f(x, *moving), *moving)
            return None, *pull(-ct / slope)

        solve.defvjp(fwd, bwd)
        grad = jax.grad(lambda a: root_of(lambda x: x**3 - a, 1.0))
        return grad(8.0), jax.jit(grad)(8.0), jax.vmap(grad)(jnp.array([1.0, 8.0]))

    def straight_through():
        @jax.custom_jvp
        def rounded(x):
            return jnp.round(x)

        rounded.defjvp(lambda p, t: (rounded(*p), t[0]))

        def by_stopping(x):
            return x + lax.stop_gradient(jnp.round(x) - x)

        xs = jnp.array([0.2, 0.7, 1.4])

        def loss(f):
            return lambda x: (f(x) ** 2).sum()

        return [jax.value_and_grad(loss(f))(xs) for f in (rounded, by_stopping)]

    def gradient_reversal():
        reverse = jax.custom_vjp(lambda x, scale: x, nondiff_argnums=(1,))
        reverse.defvjp(lambda x, scale: (x, None), lambda scale, _, ct: (-scale * ct,))

        def loss(params, x):
            features = jnp.tanh(params["body"] * x)
            return (params["head"] * reverse(features, 0.5)).sum()

        params = {"body": 0.3, "head": 2.0}
        return jax.jit(jax.grad(loss))(params, jnp.arange(3.0))

    def debugging_backwards():
        seen = []

        @jax.custom_vjp
        def look(x):
            return x

        def bwd(_, ct):
            seen.append(jnp.shape(ct))
            return (ct,)

        look.defvjp(lambda x: (x, None), bwd)
        slope = jax.grad(lambda x: (look(jnp.sin(x)) ** 2).sum())(jnp.ones(3))
        return slope, seen

    def stop_at_a_branch():
        @jax.custom_vjp
        def f(x):
            return x if x > 0 else -x

        f.defvjp(lambda x: (f(x), x > 0), lambda kept, ct: (ct * (3 if kept else 5),))
        return jax.grad(f)(2.0), jax.grad(f)(-2.0)

    def trees():
        @jax.custom_vjp
        def dense(layer, x):
            return {"out": layer["w"] @ x + layer["b"], "none": None}

        def fwd(layer, x):
            return dense(layer, x), (layer["w"], x)

        def bwd(kept, cts):
            w, x = kept
            ct = cts["out"]
            return {"w": ct[:, None] * x, "b": 2 * ct}, w.T @ ct

        dense.defvjp(fwd, bwd)
        layer = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(2)}
        f = jax.jit(jax.grad(lambda layer, x: (dense(layer, x)["out"] ** 2).sum()))
        batch = jax.vmap(f, (None, 0))(layer, jnp.ones((4, 3)))
        return f(layer, jnp.ones(3)), batch

    def two_in_one():
        @jax.custom_gradient
        def product(x, y):
            return x * y, lambda ct: (ct * y, 2.0 * ct * x)

        both = jax.grad(product, (0, 1))
        return both(3.0, 4.0), jax.jit(both)(3.0, 4.0)

    def batch_in_one_call():
        @jax.custom_batching.custom_vmap
        def solve(matrix, b):
            return b / jnp.diagonal(matrix)

        @solve.def_vmap
        def rule(size, in_mapped, matrices, b):
            matrix_mapped, b_mapped = in_mapped
            assert not matrix_mapped and b_mapped
            return b / jnp.diagonal(matrices), True

        matrix, b = jnp.eye(3) * 2.0, jnp.arange(6.0).reshape(2, 3)

        def loop(c, x):
            return c + 1.0, jax.vmap(solve, (None, 0))(matrix, b * x)

        mapped = jax.vmap(solve, (None, 0))
        values = jax.jvp(lambda b: mapped(matrix, b), (b,), (b,))
        return values, jax.jit(mapped)(matrix, b), lax.scan(loop, 0.0, jnp.arange(2.0))

    def one_after_the_other():
        f = jax.custom_batching.sequential_vmap(lambda x, y: jnp.sin(x) * y)
        return jax.jit(jax.vmap(f, (0, None)))(jnp.arange(3.0), 2.0)

    def implicit_root():
        def root(a):
            return lax.custom_root(
                lambda x: x * x - a,
                1.0,
                lambda f, x: lax.fori_loop(0, 20, lambda i, x: x - f(x) / (2 * x), x),
                lambda g, y: y / g(1.0),
            )

        grad = jax.grad(root)
        return (
            root(2.0),
            grad(2.0),
            jax.grad(grad)(2.0),
            jax.jit(jax.vmap(grad))(jnp.arange(1.0, 4.0)),
        )

    def linear_solve():
        def iterate(matvec, b):
            return lax.fori_loop(
                0, 60, lambda i, x: x + 0.25 * (b - matvec(x)), jnp.zeros_like(b)
            )

        def solve(matrix, b, **options):
            return lax.custom_linear_solve(
                lambda x: matrix @ x, b, iterate, **options
            ).sum()

        matrix, b = jnp.array([[2.0, 1.0], [0.5, 3.0]]), jnp.array([1.0, 2.0])
        back = functools.partial(solve, transpose_solve=iterate)
        grads = jax.grad(back, (0, 1))
        mapped = jax.vmap(grads, (None, 0))(matrix, jnp.stack([b, b * 2]))
        slope = jax.jvp(solve, (matrix, b), (matrix * 0.5, b))
        return grads(matrix, b), jax.jit(grads)(matrix, b), mapped, slope

    def own_transpose():
        def f(x, divisor):
            return x + jax.custom_derivatives.linear_call(
                lambda r, x: x / r, lambda r, ct: 2.0 * ct / r, divisor, x
            )

        transposed = jax.linear_transpose(lambda x: f(x, 3.0), 1.0)
        return transposed(18.0), jax.grad(f)(9.0, 3.0), jax.jit(jax.grad(f))(9.0, 3.0)

    return {name: f for name, f in locals().items() if callable(f) and f is not jax}


def texts(jax):
    """Return pairs of a function and arguments whose jaxprs are compared."""
    lax = jax.lax

    @jax.custom_batching.custom_vmap
    def f(x, y):
        return jax.numpy.sin(x) * y

    f.def_vmap(lambda size, in_mapped, x, y: (x * y, True))
    xs = jax.numpy.arange(3.0)
    gradient = jax.custom_gradient(lambda x: (x * x, lambda ct: (ct * x,)))

    def divided(w, b):
        return lax.custom_linear_solve(lambda x: w * x, b, lambda m, b: b / w)

    def root(a):
        return lax.custom_root(
            lambda x: x - a, 1.0, lambda f, x: x - f(x), lambda g, y: y
        )

    return {
        "custom_vmap": (f, (1.0, 2.0)),
        "custom_vmap, jvp": (lambda x, t: jax.jvp(f, (x, 2.0), (t, 0.0)), (1.0, 1.0)),
        "custom_vmap, vmap": (jax.vmap(f, (0, None)), (xs, 2.0)),
        "custom_gradient": (gradient, (1.0,)),
        "custom_gradient, grad": (jax.grad(gradient), (1.0,)),
        "custom_linear_solve": (divided, (3.0, xs)),
        "custom_root": (root, (1.0,)),
        "custom_root, jvp": (lambda x, t: jax.jvp(root, (x,), (t,)), (1.0, 1.0)),
    }


def mistakes(jax):
    """Return functions that raise."""
    lax, custom_vmap = jax.lax, jax.custom_batching.custom_vmap
    xs = jax.numpy.arange(3.0)

    def ruled(rule):
        f = custom_vmap(lambda x: x)
        f.def_vmap(rule)
        return jax.vmap(f)(xs)

    def root(f, solve, tangent_solve=lambda g, y: y, **options):
        return lambda: lax.custom_root(f, 1.0, solve, tangent_solve, **options)

    def solved(matvec, solve=lambda m, b: b, **options):
        return lambda: lax.custom_linear_solve(matvec, xs, solve, **options)

    def unary(x):
        return x

    def backwards():
        return jax.grad(lambda b: solved(unary)() @ b + solve_sum(b))(xs)

    def solve_sum(b):
        return lax.custom_linear_solve(unary, b, lambda m, b: b).sum()

    def converted():
        return jax.closure_convert(unary, 1.0)[0]((1.0,))

    def other_transpose():
        def f(x):
            return jax.custom_derivatives.linear_call(
                lambda r, x: x, lambda r, ct: (ct, ct), (), x
            )

        return jax.linear_transpose(f, 1.0)(1.0)

    def on_the_tape():
        f = jax.custom_jvp(unary)
        f.defjvp(lambda p, t: (t[0], t[0]))
        return jax.grad(f)(1.0)

    def both(f):
        f.def_vmap(lambda size, in_mapped, x: (x, True))
        return f

    return {
        "no rule": lambda: custom_vmap(unary)(1.0),
        "other flags": lambda: ruled(lambda n, m, x: (x, (True,))),
        "other result": lambda: ruled(lambda n, m, x: ((x,), (True,))),
        "keywords": lambda: both(custom_vmap(unary))(y=1.0),
        "backwards": lambda: jax.grad(both(custom_vmap(unary)))(1.0),
        "on the tape": on_the_tape,
        "f": root(lambda x: (x,), lambda f, x: x),
        "solve": root(unary, lambda f, x: (x, x)),
        "tangent_solve": root(unary, lambda f, x: x, lambda g, y: (y,)),
        "no aux": root(unary, lambda f, x: x, has_aux=True),
        "matvec's shape": solved(lambda x: x[:1]),
        "matvec": solved(lambda x: (x,)),
        "linear solve": solved(unary, lambda m, b: (b,)),
        "no transpose": backwards,
        "closure": converted,
        "transpose": other_transpose,
    }


RECORD = Path(__file__).parent / "data" / "own_rules_programs.json"


def outcomes(jax):
    """Return what all of them come to, as data: numbers, texts and messages."""
    numbers, found = newcomers(jax), {"numbers": {}, "texts": {}, "messages": {}}
    for name, program in numbers.items():
        leaves = jax.tree.leaves(program())
        found["numbers"][name] = [np.asarray(leaf).tolist() for leaf in leaves]
    for name, (f, args) in texts(jax).items():
        text = str(jax.make_jaxpr(f)(*args))
        found["texts"][name] = re.sub("rule=<.*>", "rule", text)
    for name, mistake in mistakes(jax).items():
        try:
            mistake()
        except Exception as error:
            words = str(error).split("\nSee")[0]
            found["messages"][name] = [type(error).__name__, words]
    return found


if __name__ == "__main__":  # python -m tests.own_rules_programs records real JAX's
    found = outcomes(importlib.import_module("jax"))
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
