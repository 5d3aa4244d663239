"""One program for each big thing that the package does, with its result asserted.

It needs the package and nothing else: `python tests/smoke.py` (tests/release_check.py).
"""

import numpy as np

import minijax as jax
import minijax.numpy as jnp
from minijax import lax
from minijax.sharding import NamedSharding
from minijax.sharding import PartitionSpec as P


def loss(w, x, y):
    residual = jnp.tanh(x @ w) - y
    return (residual * residual).sum()


def arguments():
    keys = jax.random.split(jax.random.key(0), 3)
    return [jax.random.normal(k, s) for k, s in zip(keys, [(3,), (8, 3), (8,)])]


def expected_gradient(w, x, y):
    """The gradient of `loss`, by NumPy."""
    w, x, y = map(np.asarray, (w, x, y))
    out = np.tanh(x @ w)
    return x.T @ (2 * (out - y) * (1 - out * out))


def check_gradients_on_each_backend(w, x, y):
    wanted = expected_gradient(w, x, y)
    for backend in ("interpreter", "python", "llvm", "cpu"):
        compiled = jax.jit(jax.grad(loss), backend=backend)
        for _ in range(200):  # warm calls are answered by machine code
            found = compiled(w, x, y)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def check_batches(w, x, y):
    each = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))(w, x, y)
    assert each.shape == (8, 3)
    wanted = expected_gradient(w, x, y)
    np.testing.assert_allclose(each.sum(0), wanted, rtol=1e-4, atol=1e-5)


def check_loops():
    def step(total, x):
        return total + x, total * x

    last, each = jax.jit(lambda xs: lax.scan(step, 0.0, xs))(jnp.arange(5.0))
    assert float(last) == 10 and each.tolist() == [0, 0, 2, 9, 24]
    slope = jax.grad(lambda xs: lax.scan(step, 0.0, xs)[1].sum())(jnp.arange(5.0))
    assert slope.tolist() == [10, 9, 8, 7, 6]


def check_random_numbers():
    bits = jax.random.bits(jax.random.key(0), (2,))
    assert bits.dtype == jnp.uint32 and len({*bits.tolist()}) == 2
    again = jax.jit(lambda key: jax.random.normal(key, (1000,)))(jax.random.key(1))
    same = jax.random.normal(jax.random.key(1), (1000,))
    np.testing.assert_allclose(again, same, rtol=1e-5, atol=1e-6)
    assert abs(float(again.mean())) < 0.1


def check_two_devices(w, x, y):
    mesh = jax.make_mesh((2,), ("data",))
    rows = NamedSharding(mesh, P("data"))
    found = jax.jit(jax.grad(loss))(w, jax.device_put(x, rows), jax.device_put(y, rows))
    wanted = expected_gradient(w, x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    summed = jax.shard_map(
        lambda x: lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()
    )(jnp.arange(4.0))
    assert summed.tolist() == [2, 4]


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 2)
    given = arguments()
    check_gradients_on_each_backend(*given)
    check_batches(*given)
    check_loops()
    check_random_numbers()
    check_two_devices(*given)
    print(
        "gradients on four backends, batches, loops, random numbers, two devices: right"
    )
