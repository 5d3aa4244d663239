"""Rules of one's own, and forgetting, as transformations of the corpus.

`wrappers` make of a function of an array another such function, which computes the
same. The rules are wrong on purpose, so that what leaves them out is seen: the
derivative is half as large again. `plain` has twins of straight-line code.
"""

NAMES = ("custom_jvp", "custom_vjp", "checkpoint")
AMOUNT = 1.5  # how much larger the derivatives are


def wrappers(jax):
    """Return rules, and forgetting, as functions from functions to functions."""

    def custom_jvp(f):
        ruled = jax.custom_jvp(f)

        @ruled.defjvp
        def rule(primals, tangents):
            _, slope = jax.jvp(f, primals, tangents)
            return ruled(*primals), AMOUNT * slope

        return ruled

    def custom_vjp(f):
        ruled = jax.custom_vjp(f)

        def pulled(kept, cotangent):
            _, pullback = jax.vjp(f, kept["x"])
            return (AMOUNT * pullback(cotangent)[0],)

        ruled.defvjp(lambda x: (f(x), {"x": x}), pulled)
        return ruled

    found = {"custom_jvp": custom_jvp, "custom_vjp": custom_vjp}
    if hasattr(jax, "checkpoint"):
        found["checkpoint"] = jax.checkpoint
    return found


def plain(jax):
    """Return what `wrappers` mean, without rules."""

    def larger(f):
        def stopped(x):
            y = f(x)
            return AMOUNT * y - (AMOUNT - 1) * jax.lax.stop_gradient(y)

        return stopped

    return {"custom_jvp": larger, "custom_vjp": larger, "checkpoint": lambda f: f}
