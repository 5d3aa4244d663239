"""Calls that move numbers between host and devices, for this package and for JAX."""

import numpy as np


def CASES(library):
    """Return calls by their names; the numbers of each lie where it says."""
    jnp, lax, random = library.numpy, library.lax, library.random
    x, y, key = np.ones(3, np.float32), jnp.arange(3.0), random.PRNGKey(0)
    f, device = library.jit(lambda a: a + 1), library.devices()[0]
    slope = library.grad(lambda a: (a * a).sum())
    return {
        "an array of NumPy": lambda: jnp.asarray(x),
        "a list": lambda: jnp.array([1.0, 2.0]),
        "a number": lambda: jnp.asarray(1.0),
        "bytes": lambda: jnp.frombuffer(x.tobytes(), dtype="float32"),
        "compiled, of NumPy": lambda: f(x),
        "compiled, of a number": lambda: f(1.0),
        "compiled, of an array": lambda: f(y),
        "and a number": lambda: y + 1,
        "and an array of NumPy": lambda: y + x,
        "a sum of arrays": lambda: y + y,
        "a function of NumPy": lambda: jnp.sin(x),
        "lax of NumPy": lambda: lax.add(x, x),
        "zeros": lambda: jnp.zeros(3),
        "full": lambda: jnp.full((3,), 2.0),
        "counting": lambda: jnp.arange(3),
        "linspace": lambda: jnp.linspace(0, 1, 3),
        "a key": lambda: random.key(0),
        "split": lambda: random.split(key),
        "folded in": lambda: random.fold_in(key, 1),
        "places": lambda: y[np.array([0, 1])],
        "set": lambda: y.at[0].set(1.0),
        "to NumPy": lambda: np.asarray(y),
        "device_get": lambda: library.device_get(y),
        "item": lambda: y.sum().item(),
        "text": lambda: repr(y),
        "an array of an array": lambda: jnp.array(y),
        "a slope": lambda: slope(x),
        "a slope at an array": lambda: slope(y),
        "a batch": lambda: library.vmap(lambda a: a * a)(x),
        "a scan": lambda: lax.scan(lambda c, a: (c + a, a), 0.0, x),
        "a branch": lambda: lax.cond(True, lambda a: a, lambda a: -a, y),
        "put": lambda: library.device_put(x),
        "put on a device": lambda: library.device_put(x, device),
        "a tree put": lambda: library.device_put({"a": x, "b": 1}),
        "a copy put": lambda: library.device_put(y, device, may_alias=False),
        "stays": lambda: library.device_put(y, device),
    }


def BETWEEN_DEVICES(library):
    """Return calls by their names, on two devices."""
    sharding = library.sharding
    mesh = library.make_mesh((2,), ("x",))
    cut = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
    first, second = library.devices()[:2]
    y = library.numpy.arange(4.0)
    there, parts = library.device_put(y, second), library.device_put(y, cut)
    add = library.jit(lambda a, b: a + b)
    double = library.jit(lambda a: a + a, in_shardings=cut)
    return {
        "put on another": lambda: library.device_put(y, second),
        "put back": lambda: library.device_put(there, first),
        "put in parts": lambda: library.device_put(y, cut),
        "put from the host": lambda: library.device_put(np.arange(4.0), cut),
        "whole and cut, compiled": lambda: add(y, parts),
        "whole and cut": lambda: y + parts,
        "cut by in_shardings": lambda: double(y),
        "cut already": lambda: double(parts),
    }


def moving(library, way, level, call):
    """Return whether a guard of JAX or of this package refuses a call."""
    try:
        with getattr(library, f"transfer_guard_{way}")(level):
            call()
    except library.errors.JaxRuntimeError as error:
        assert "Disallowed" in str(error)
        return True
    return False
