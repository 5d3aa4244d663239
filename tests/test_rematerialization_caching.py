"""Caches: each value is made once, bounded, forgotten with its object."""

import gc
import threading
import time

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.llvm.compiler import Engine
from minijax.rematerialization import caching as remembering
from minijax.rematerialization.caching import (
    KeyedCache,
    cache_for_object,
    trace_context,
    weakref_cache,
    weakref_memoize,
)
from minijax.sharding import Mesh
from minijax.sharding import PartitionSpec as P


def in_threads(work, count=8):
    """Run `work` in many threads that start together; return their results."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(number):
        barrier.wait()
        results[number] = work()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    return results


def test_a_value_is_made_once():
    once, made = KeyedCache(), []
    make = lambda: made.append(1) or object()  # noqa: E731
    assert once.get("key", make) is once.get("key", make)
    assert len(made) == 1


def test_threads_wait_for_the_first():
    once, made = KeyedCache(), []

    def make():
        made.append(1)
        time.sleep(0.05)
        return object()

    results = in_threads(lambda: once.get("key", make))
    assert len(made) == 1
    assert len(set(map(id, results))) == 1


def test_other_keys_do_not_wait():
    once, inside = KeyedCache(), threading.Event()

    def slow():
        inside.set()
        assert done.wait(100)
        return 1

    done = threading.Event()
    thread = threading.Thread(target=once.get, args=("slow", slow))
    thread.start()
    assert inside.wait(100)
    assert once.get("quick", lambda: 2) == 2
    done.set()
    thread.join()
    assert once.get("slow", lambda: 3) == 1


def test_making_may_ask_for_another_key():
    once = KeyedCache()
    assert once.get(1, lambda: once.get(2, lambda: 20) + 1) == 21


def test_an_error_is_not_kept():
    once = KeyedCache()
    with pytest.raises(ZeroDivisionError):
        once.get("key", lambda: 1 // 0)
    assert once.get("key", lambda: 5) == 5
    assert not any(lock() for lock in once._making.values())


def test_what_is_not_to_be_kept_is_made_again():
    once, made = KeyedCache(), []
    for _ in range(2):
        once.get("key", lambda: made.append(1) or 7, keep=lambda value: False)
    assert len(made) == 2
    assert once.refused
    assert not once.values


def test_the_oldest_goes():
    once = KeyedCache()
    once.limit = 3
    for key in range(5):
        once.get(key, lambda: "value")
    assert list(once.values) == [2, 3, 4]


def test_clear():
    once = KeyedCache()
    once.clear()
    assert not once.cleared
    once.get("key", lambda: 1)
    once.clear()
    assert once.cleared
    assert once.get("key", lambda: 2) == 2


class Thing:
    pass


def test_a_cache_forgets_what_dies():
    cache, thing = weakref_cache(), Thing()
    remembering.all_caches.remove(cache)
    cache_for_object(cache, thing).get("key", lambda: 1)
    assert cache_for_object(cache, thing).values == {"key": 1}
    assert len(cache) == 1
    del thing
    gc.collect()
    assert len(cache) == 0


def test_remembered():
    made = []

    @weakref_memoize
    def make(thing, number):
        """Text."""
        made.append(number)
        return number * 10

    thing = Thing()
    assert [make(thing, n) for n in (1, 2, 1)] == [10, 20, 10]
    assert made == [1, 2]
    with minijax.enable_x64():
        assert make(thing, 1) == 10
    assert made == [1, 2, 1]
    assert make.__doc__ == "Text."
    remembering.all_caches.pop()


def test_trace_context():
    seen = []

    def look(x):
        seen.append(trace_context()[1])
        return x

    minijax.vmap(minijax.vmap(look, axis_name="j"), axis_name="i")(
        minijax.numpy.ones((2, 3))
    )
    assert [(axis.name, axis.size) for axis in seen[0]] == [("j", 3), ("i", 2)]
    switches, axes = trace_context()
    assert axes == ()
    with minijax.enable_x64():
        assert trace_context() != (switches, axes)


def test_clear_caches():
    count = []
    f = minijax.jit(lambda x: count.append(1) or x)
    f(1.0), f(1.0)
    minijax.clear_caches()
    f(1.0), f(1.0)
    assert len(count) == 2


X = jnp.arange(4.0)
MESH = Mesh(np.array(minijax.devices("cpu")[:1]), ("i",))


def compiled(function):
    return minijax.jit(function, backend="cpu")


# Calls of functions that are new each time, and that nobody holds afterwards.
DROPPED = {
    "jit": lambda f: compiled(f)(X),
    "many calls": lambda f: [*map(compiled(f), [X] * 200)],
    "grad": lambda f: minijax.grad(compiled(lambda x: f(x).sum()))(X),
    "vmap": lambda f: minijax.vmap(compiled(f))(X),
    "loop": lambda f: compiled(lambda x: lax.fori_loop(0, 3, lambda i, y: f(y), x))(X),
    "ahead": lambda f: compiled(f).lower(X).compile()(X),
    "callback": lambda f: compiled(lambda x: f(minijax.pure_callback(np.sin, X, x)))(X),
    "pmap": lambda f: [*map(minijax.pmap(f), [X[None]] * 9)],
    "shard_map": lambda f: compiled(
        minijax.shard_map(f, mesh=MESH, in_specs=P("i"), out_specs=P("i"))
    )(X),
}


def engines():
    gc.collect()
    return sum(isinstance(each, Engine) for each in gc.get_objects())


@pytest.mark.parametrize("name", DROPPED)
def test_machine_code_goes_with_its_function(name, monkeypatch):
    monkeypatch.setattr("minijax.sharding.pmap.MAX_CACHED_PROGRAMS", 4)
    minijax.clear_caches()
    counts = []
    for number in range(12):
        DROPPED[name](lambda x, number=number: jnp.sin(x) * (number + 0.5))
        counts.append(engines())
    assert counts[-1] == counts[5] and counts[-1] - counts[0] <= 4, counts


def test_machine_code_stays_while_it_runs():
    """The last reference to a function goes in the middle of its call."""

    def drop(x):
        holder.clear()
        minijax.clear_caches()
        found.append(engines())
        return x

    holder, found = [], []
    for number in range(4):
        holder += [
            compiled(lambda x, n=number: minijax.pure_callback(drop, X, x * 2) + n)
        ]
        assert holder[0](X).tolist() == [number + 2 * n for n in range(4)]
    assert min(found) > 0 and engines() < max(found)
