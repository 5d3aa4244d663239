"""Eager minijax beside eager JAX: operations, tracing, a gradient; single calls.

python benchmarks/eager.py [--json FILE] [--only TEXT]
"""

import importlib
import math

from side_by_side import (
    blocked,
    measure,
    options,
    pin,
    random,
    refuse_different_results,
    versions,
    write_json,
)

# isort: split
import eager_rows  # after the settings of side_by_side, which NumPy reads


def programs(jax):
    """The rows: names, and functions without arguments that do the work once."""
    jnp = jax.numpy
    small, large = (jnp.asarray(random(n)) for n in (4, 100_000))
    matrix, images = jnp.asarray(random(128, 128)), jnp.asarray(random(48, 64))
    params = [
        {"w": jnp.asarray(random(*shape)), "b": jnp.zeros(shape[1])}
        for shape in ((64, 64), (64, 10))
    ]

    def network(params, x):
        for layer in params:
            x = jnp.tanh(jnp.dot(x, layer["w"]) + layer["b"])
        return (x * x).sum()

    def chain(x):
        for _ in range(50):
            x = jnp.sin(x) * 2.0
        return x

    gradient = jax.value_and_grad(network)
    return {
        "add, 4 numbers": lambda: small + small,
        "tanh, 100,000 numbers": lambda: jnp.tanh(large),
        "sum, 100,000 numbers": lambda: large.sum(),
        "matrix product, 128": lambda: matrix @ matrix,
        "write down 100 equations": lambda: jax.make_jaxpr(lambda x: chain(x))(small),
        "jvp of 100 operations": lambda: jax.jvp(chain, (small,), (small,)),
        "vmap of 100 operations": lambda: jax.vmap(chain)(matrix),
        "value and gradient of a network": lambda: gradient(params, images),
    }


def main():
    """Print the table."""
    chosen = options(__doc__)
    pin()
    packages = [importlib.import_module(name) for name in ("minijax", "jax")]
    head, rows = versions(packages), {}
    print(", ".join(f"{name} {version}" for name, version in head.items()))
    print(f"{'':44}{'minijax':>13}{'JAX':>13}{'ratio':>8}   quartiles")
    tables = [programs(p) | eager_rows.functions(p) for p in packages]
    for name in [name for name in tables[0] if chosen.only in name]:
        functions = [table[name] for table in tables]
        refuse_different_results(name, packages, functions)
        ours, theirs = map(blocked, packages, functions)
        row = rows[name] = measure({"minijax": ours, "jax": theirs})
        low, high = row["quartiles"]["jax"]
        print(
            f"{name:44}{row['us']['minijax']:10.1f} µs{row['us']['jax']:10.1f} µs"
            f"{row['ratio']['jax']:8.2f}   {low:.2f}–{high:.2f}",
            flush=True,
        )
    groups = {"tiny": eager_rows.texts(), "large": eager_rows.large()}
    for kind, names in groups.items():
        ratios = [rows[name]["ratio"]["jax"] for name in names if name in rows]
        if ratios:
            mean = math.prod(ratios) ** (1 / len(ratios))
            behind = sum(ratio > 1 for ratio in ratios)
            print(f"{len(ratios)} calls with {kind} arrays: ", end="")
            print(f"geometric mean {mean:.3f}, {behind} above 1")
    if chosen.json:
        write_json(chosen.json, head, rows)


if __name__ == "__main__":
    main()
