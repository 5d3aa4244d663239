"""Calls by the fast path: that they happen, and are what Python's calls are."""

import copy
import dataclasses
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import core, grad, jit, lax, vmap
from minijax.arrays.array import ArrayImpl
from minijax.arrays.dtypes import config
from minijax.cpu_backend.program_codegen import data_pointer
from minijax.dispatch import fastpath_functions as gated_functions
from minijax.dispatch.fastpath_functions import (
    FastPathFunction,
    SignatureCache,
    enable_fastpath,
)
from minijax.dispatch.word_language import UnknownLayout
from minijax.errors import JaxRuntimeError
from minijax.jitting.arguments import DonatedArray

BACKEND = "cpu"


@pytest.fixture(autouse=True)
def gate():
    """Skip where the fast path stays off."""
    try:
        return enable_fastpath()
    except UnknownLayout:
        pytest.skip("the fast path is off in this Python")


def in_python(function):
    """Return how many calls of a function have gone through Python."""
    return sum(function._ready.seen.values())


def warmed(function, *args, **kwargs):
    """Call a function until the fast path knows it, and check that it does."""
    for _ in range(3):
        expected = function(*args, **kwargs)
    before = in_python(function)
    found = function(*args, **kwargs)
    assert in_python(function) == before, "the call has gone through Python"
    same(found, expected)
    return found


def same(found, expected):
    """Check that two trees are equal in everything."""
    found, tree = minijax.tree.flatten(found)
    expected, other = minijax.tree.flatten(expected)
    assert tree == other
    for x, y in zip(found, expected):
        assert type(x) is type(y) is ArrayImpl
        assert x.aval == y.aval and x.device is y.device
        assert not x._buffer.flags.writeable
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def goes_through_python(function, *args, **kwargs):
    """Return the result of a call that the fast path leaves to Python."""
    before = in_python(function)
    result = function(*args, **kwargs)
    assert in_python(function) > before
    return result


def tiny(**options):
    return jit(lambda x, y: x * y + 1, backend=BACKEND, **options)


X = jnp.arange(4, dtype="float32")
DTYPES = "bool int8 uint16 int32 uint32 float16 bfloat16 float32 complex64".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 5)])
def test_dtypes_and_shapes(dtype, shape):
    x = jnp.zeros(shape, dtype) + jnp.ones(shape, dtype)
    warmed(jit(lambda x, y: (x + y, y), backend=BACKEND), x, x)


def test_wide_types():
    with minijax.enable_x64():  # a change for this thread: Python is asked
        x = jnp.arange(3.0)
        f = tiny()
        for _ in range(4):
            assert goes_through_python(f, x, x).dtype == "float64"
    config.update("jax_enable_x64", True)
    try:
        x = jnp.arange(3.0)
        f = tiny()
        assert warmed(f, x, 2.5).dtype == "float64"
        assert warmed(f, jnp.arange(3), 2).dtype == "int64"
    finally:
        config.update("jax_enable_x64", False)
    assert goes_through_python(f, X, X).dtype == "float32"


class Point(NamedTuple):
    x: object
    y: object


Pair = namedtuple("Pair", "left right")


class Doubled(Pair):
    """A named tuple with a constructor of its own."""

    def __new__(cls, left, right=None):
        return super().__new__(cls, left, left if right is None else right)


TREES = [
    (X, X),
    [X, [X], ()],
    {"b": X, "a": [X, (X, None)]},
    Point(X, {"z": X}),
    {},
    None,
    Pair([X], ()),
    [[[[X]]]],
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees(tree):
    def add(tree, x):
        return minijax.tree.map(lambda y: y + x, tree), x

    f = jit(add, backend=BACKEND)
    warmed(f, tree, X)


def test_other_trees_are_for_python():
    f = jit(lambda tree: minijax.tree.map(lambda y: y + 1, tree), backend=BACKEND)
    warmed(f, [X, X])
    others = [(X, X), [X], [X, X, X], [X, [X]], {"a": X, "b": X}, X, None, [X, None]]
    for tree in others:
        assert minijax.tree.structure(goes_through_python(f, tree)) == (
            minijax.tree.structure(tree)
        )
    for tree in ({"a": X}, {"c": X}, {"a": X, "c": X}, {1: X}):
        assert goes_through_python(f, tree).keys() == tree.keys()
    double = Doubled(X)
    for _ in range(4):
        assert type(goes_through_python(f, double)) is Doubled


class Box:
    """A container with a name, whose children are in a list if it is asked for."""

    def __init__(self, name, *items):
        self.name, self.items, self.pair, self.calls = name, items, tuple, 0

    def flatten(self):
        self.calls += 1
        return self.pair([self.items, self.name])


minijax.tree_util.register_pytree_node(
    Box, Box.flatten, lambda name, items: Box(name, *items)
)
SWAPPED = namedtuple("Swapped", "left right")
minijax.tree_util.register_pytree_node(
    SWAPPED, lambda pair: (pair[::-1], None), lambda _, items: SWAPPED(*items[::-1])
)


@minijax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weights: object
    bias: object


def test_registered_classes():
    f = jit(lambda box, y: Box(box.name * 2, box.items[1], [y]), backend=BACKEND)
    box = Box("a", X, X + 1)
    for _ in range(3):
        f(box, X)
    for k in range(10):
        found = without_python(f, Box("a", X, X + k), X)
        assert type(found) is Box and found.name == "aa"
        same(list(found.items), [X + k, [X]])
    before = in_python(f)
    assert f(Box("b", X, X), X).name == "bb" and in_python(f) > before
    for _ in range(3):
        f(Box("b", X, X), X)
    assert without_python(f, Box("b", X, X), X).name == "bb"
    assert without_python(f, Box("a", X, X), X).name == "aa"
    f(Box("a", X, X, X), X)
    assert in_python(f) > before


def test_dataclasses_and_ordered_dictionaries():
    layer = Layer(X, [X + 1])
    f = jit(lambda layer: Layer(layer.weights + 1, {"b": layer.bias}), backend=BACKEND)
    for _ in range(3):
        f(layer)
    found = without_python(f, layer)
    same((found.weights, found.bias), (X + 1, {"b": [X + 1]}))
    tree = OrderedDict(z=X, a=defaultdict(list, {"k": X + 1}))
    g = jit(lambda tree: OrderedDict(b=tree["a"], a=tree["z"] * 2), backend=BACKEND)
    for _ in range(3):
        g(tree)
    found = without_python(g, tree)
    assert [*found] == ["b", "a"] and found["b"].default_factory is list
    same((found["b"]["k"], found["a"]), (X + 1, X * 2))
    g(OrderedDict(a=tree["a"], z=X))  # another order
    assert [*g(tree)] == ["b", "a"]


def test_named_tuples_that_are_registered():
    f = jit(lambda pair: (pair.left * 2, SWAPPED(pair.right, X)), backend=BACKEND)
    pair = SWAPPED(X, X + 1)
    for _ in range(3):
        f(pair)
    doubled, swapped = without_python(f, pair)
    same((doubled, swapped.left, swapped.right), (X * 2, X + 1, X))


def test_children_of_another_kind_are_for_python():
    f = jit(lambda box: box.items[0] + 1, backend=BACKEND)
    box = Box("c", X)
    box.pair = lambda parts: (iter(parts[0]), parts[1])
    for _ in range(6):
        same(f(box), X + 1)
    box.calls = 0
    same(goes_through_python(f, box), X + 1)
    assert box.calls == 1, "the fast path has looked as well"


def test_a_list_is_no_pair_for_a_warm_function_either():
    f = jit(lambda box: box.items[0] + 1, backend=BACKEND)
    for _ in range(6):
        same(f(Box("c", X)), X + 1)
    box = Box("c", X)
    box.pair = list
    for _ in range(3):
        with pytest.raises(ValueError, match=r"return a \(children, aux_data\) tuple"):
            f(box)


class Failing(Box):
    """A container that cannot be taken apart, or made, when it is told so."""

    error = None

    def flatten(self):
        if self.error:
            raise self.error("no")
        return self.items, self.name


minijax.tree_util.register_pytree_node(
    Failing, Failing.flatten,
    lambda name, items: name(*items) if callable(name) else Failing(name, *items),
)  # fmt: skip


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_of_registered_classes(error):
    def make(*items):
        if len(made) > 5:
            raise error("no")
        made.append(items)
        return Failing(make, *items)

    made = []
    f = jit(lambda box: [X, Failing(make, box.items[0] + 1), X + 2], backend=BACKEND)
    box = Failing("f", X)
    for _ in range(4):
        f(box)
    before = in_python(f)
    box.error = error
    with pytest.raises(error):
        f(box)
    box.error = None
    assert in_python(f) == before
    del made[2:]
    without_python(f, box)
    made += [()] * 9
    counts = [sys.getrefcount(x) for x in (X, X.aval, X._buffer)]
    for _ in range(50):
        with pytest.raises(error):
            without_python(f, box)
    after = [sys.getrefcount(x) for x in (X, X.aval, X._buffer)]
    assert all(abs(a - b) < 20 for a, b in zip(counts, after)), (counts, after)
    made.clear()
    assert len(f(box)) == 3


def test_what_flattening_does_meanwhile():
    def flatten(box):
        for thing in box.name:
            thing()
        return (box.items[0],), None

    Busy = type("Busy", (Box,), {})
    minijax.tree_util.register_pytree_node(Busy, flatten, lambda _, items: items[0])
    f = jit(lambda boxes: minijax.tree.leaves(boxes)[1] + 1, backend=BACKEND)
    inner = []
    things = [
        f.clear_cache, gc.collect, lambda: inner.append(f([X, X])),
        lambda: config.update("jax_enable_x64", False), minijax.clear_caches,
    ]  # fmt: skip
    for thing in things:
        for _ in range(6):
            same(f([Busy([], X), Busy([thing], X * 2)]), X * 2 + 1)
            same(f([Busy([], X), Busy([thing], X[:2])]), X[:2] + 1)


def test_temporary_leaves():
    """Children that only the pair holds, and that Python may drop."""

    class Fresh(Box):
        pass

    def flatten(box):
        return [np.array(box.items[0], np.float32), jnp.asarray(box.items[0]) * 2], None

    minijax.tree_util.register_pytree_node(Fresh, flatten, lambda _, items: items)
    f = jit(lambda fresh, y: sum(minijax.tree.leaves(fresh)) + y, backend=BACKEND)
    for _ in range(3):
        f(Fresh("", [1.0, 2.0]), 1.0)
    for k in range(200):
        found = without_python(f, Fresh("", [1.0, k]), 0.5)
        assert np.asarray(found).tolist() == [3.5, 3 * k + 0.5]


def test_kinds_of_one_function():
    f = tiny()
    shapes = [(n,) for n in range(60)]
    for _ in range(3):
        for shape in shapes:
            x = jnp.ones(shape)
            same(f(x, x), x * x + 1)
    assert len(f._ready.chain) == SignatureCache.limit
    for n in (30, 35, 39):
        x = jnp.ones(n)
        warmed(f, x, x)


SECOND_CALL = """
import sys
import minijax
from minijax.dispatch.fastpath_functions import SignatureCache, _opened
from minijax.llvm import compiler

f, x = minijax.jit(lambda x: x * 2 + 1), minijax.numpy.ones(4)
made, maker = [], compiler.engine_factory.value
compiler.engine_factory.value = lambda library: made.append(1) or maker(library)
f(x)
modules, first = len(sys.modules), len(made)
for count in range(2, SignatureCache.warm):
    f(x)
    assert (len(sys.modules), len(made), _opened) == (modules, first, []), count
f(x)
assert first and len(made) > first and f._ready.chain
g = minijax.jit(lambda x: x - 1)
for _ in range(2):
    g(x)
assert g._ready.chain, "the fast path is on already"
"""


def test_the_second_call_makes_nothing():
    run(SECOND_CALL, MINIJAX_BACKEND=BACKEND, JAX_ENABLE_COMPILATION_CACHE="0")


def test_numpy_arrays():
    f, x = tiny(), np.arange(4, dtype="float32")
    warmed(f, x, X)
    for other in (x[::-1], x.astype("float64"), x.astype("int32")):
        same(goes_through_python(f, other, X), jnp.asarray(other) * X + 1)
    wrong = np.frombuffer(b"\0" + x.tobytes(), "float32", 4, 1)
    same(goes_through_python(f, wrong, X), X * X + 1)
    x[:] = 7  # the user's own array: it is looked at in each call
    same(f(x, X), 7 * X + 1)


def test_numbers_of_python():
    f = jit(lambda x, a: x * a, backend=BACKEND)
    for number in (0.1, 3, True, -2, 1e30, float("nan")):
        warmed(f, X, number)
    assert f(X, 0.1)._buffer[1] == np.float32(0.1)
    assert f(X, 7)._buffer[1] == 7 and f(X, -(2**31))._buffer[1] == -(2.0**31)
    with pytest.raises(OverflowError):
        f(X, 2**31)
    with pytest.raises(OverflowError):
        f(X, 2**70)
    goes_through_python(f, X, np.float64(0.5))
    goes_through_python(f, X, 1j)


def test_weak_types_differ():
    f = jit(lambda x: x + 1.0, backend=BACKEND)
    weak, strong = lax.full((), 1.0), jnp.float32(1)
    weak = jit(lambda: 2.0)()
    assert weak.weak_type and not strong.weak_type
    for _ in range(4):
        assert f(weak).weak_type and not f(strong).weak_type
        assert not f(np.zeros((), "float32")).weak_type
        assert f(2.0).weak_type


def test_arguments_by_name():
    f = jit(lambda x, y, z=1.0: x * y + z, backend=BACKEND)
    warmed(f, X, y=X)
    warmed(f, X, z=2.0, y=X)
    warmed(f, z=X, y=X, x=X)
    warmed(f, X, X, **{})
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, X, w=X)


def test_static_arguments():
    static = {"static_argnums": 1, "static_argnames": "mode"}
    f = jit(lambda x, n, mode="a": x * n, backend=BACKEND, **static)
    for n in (2, 3, 2.0, True):
        same(warmed(f, X, n), X * n)
        same(warmed(f, X, n, mode="b"), X * n)
    assert f(X, 1).dtype == "float32" and f(X, 0.0)._buffer[1] == 0
    g = jit(lambda x, n: x + (n is float), backend=BACKEND, static_argnums=1)
    warmed(g, X, float)  # a class is no number of that class
    same(g(X, 0.0), X)
    with pytest.raises(ValueError, match="[Nn]on-hashable"):
        f(X, [1])


def donating(**options):
    """Return a function that gives its first argument away, and is warm."""
    f = jit(lambda x, y: (x + y, y * 2), donate_argnums=0, backend=BACKEND, **options)
    for _ in range(3):
        f(jnp.ones(5) * 2, jnp.ones(5))
    return f


def without_python(f, *args):
    """Return the result of a call that the fast path answers."""
    before = in_python(f)
    result = f(*args)
    assert in_python(f) == before
    return result


def test_donated_arguments():
    f, y = donating(), jnp.asarray(np.ones(5, np.float32))
    for k in range(20):
        x = y * (2 + k)
        place = data_pointer(x._buffer)
        found = without_python(f, x, y)
        same(found, (y * (3 + k), y * 2))
        assert data_pointer(found[0]._buffer) == place, "the memory was not taken"
        assert type(x) is DonatedArray and x.is_deleted() and not y.is_deleted()
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            f(x, y)
        assert x.aval == y.aval
        del x


def test_what_is_donated_in_python():
    f, y = donating(), jnp.asarray(np.ones(5, np.float32))
    x = y * 2
    view = np.asarray(x)
    same(goes_through_python(f, x, y), (y * 3, y * 2))
    assert x.is_deleted() and (view == 2).all()
    x = y * 2
    twin = ArrayImpl(x._buffer, x.aval, x.placement)
    same(goes_through_python(f, x, y), (y * 3, y * 2))
    assert x.is_deleted() and (np.asarray(twin) == 2).all()
    x = y * 2
    with pytest.raises(JaxRuntimeError, match="donated"):
        f(x, x)
    assert not x.is_deleted()
    numbers = np.full(5, 2, np.float32)
    same(goes_through_python(f, numbers, y), (y * 3, y * 2))
    assert (numbers == 2).all()
    same(without_python(f, x, y), (y * 3, y * 2))


def test_counts_of_donated_arrays():
    f, y = donating(), jnp.asarray(np.ones(5, np.float32))
    states = [y * 2 for _ in range(100)]
    kinds = ArrayImpl, DonatedArray, None
    before = [sys.getrefcount(kind) for kind in kinds[:2]]
    buffers = [weakref.ref(x._buffer) for x in states]
    for x in states:
        f(x, y)
    assert [type(x) for x in states] == [DonatedArray] * 100
    after = [sys.getrefcount(kind) for kind in kinds[:2]]
    assert after[1] - before[1] == 100 and -110 < after[0] - before[0] < -90
    del states, x
    gc.collect()
    assert sum(reference() is not None for reference in buffers) <= 8
    assert abs(sys.getrefcount(DonatedArray) - before[1]) <= 8


def test_a_donated_training_loop():
    def step(params, x):
        return {"w": params["w"] - 0.1 * x, "b": [p * 0.5 for p in params["b"]]}

    f = jit(step, donate_argnums=0, backend=BACKEND)
    g = jit(step, backend="interpreter")
    big = jnp.ones((64, 128))  # its memory is of the pool
    ours = {"w": big * 1, "b": [jnp.ones(3), jnp.ones(())]}
    theirs = minijax.tree.map(lambda x: x * 1, ours)
    for k in range(30):
        before = in_python(f)
        ours, theirs = f(ours, big * k), g(theirs, big * k)
        assert k < 4 or in_python(f) == before
        for x, y in zip(*map(minijax.tree.leaves, (ours, theirs))):
            np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


def test_deleted_arguments():
    f = warm = tiny()
    x = X + 0
    warmed(warm, x, X)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, X)


def test_tracers_and_transformations():
    f = tiny()
    warmed(f, X, X)
    same(grad(lambda x: f(x, x).sum())(X), 2 * X)
    same(vmap(f)(jnp.ones((2, 4)), jnp.ones((2, 4))), jnp.ones((2, 4)) * 2)
    calls = []

    @jit
    def outer(x):
        calls.append(f(X, X))  # concrete arrays, and yet it is to be written down
        return x + calls[-1]

    same(outer(X), X + X * X + 1)
    assert isinstance(calls[0], core.Tracer)
    with pytest.raises(minijax.errors.UnexpectedTracerError):
        f(calls[0], X)


def test_switches():
    f, seen = tiny(), []
    g = jit(lambda x: seen.append(x) or x + 1, backend=BACKEND)
    warmed(f, X, X)
    warmed(g, X)
    with minijax.disable_jit():
        g(X)
    assert len(seen) == 2
    core.bind_listeners.append(lambda primitive, *rest: seen.append(primitive))
    try:
        f(X, X)
    finally:
        core.bind_listeners.pop()
    assert str(seen[-1]) == "jit"
    warmed(f, X, X)
    config.update("minijax_backend", "interpreter")
    try:
        goes_through_python(f, X, X)
    finally:
        config.update("minijax_backend", None)


def test_debug_nans():
    f = jit(lambda x: jnp.log(x), backend=BACKEND)
    warmed(f, -X)
    config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            f(-X)
    finally:
        config.update("jax_debug_nans", False)
    warmed(f, -X)
    with minijax.debug_nans(), pytest.raises(FloatingPointError):
        f(-X)
    warmed(f, -X)


def test_errors():
    f = tiny()
    warmed(f, X, X)
    with pytest.raises(TypeError, match="argument"):
        f(X)
    with pytest.raises(TypeError):
        f(X, "text")
    with pytest.raises(TypeError):
        f(X, object())


def test_results_are_not_touched_again():
    f = tiny()
    warmed(f, X, X)
    results = [f(X * k, X) for k in range(50)]
    views = [np.asarray(f(X * k, X)) for k in range(50)]
    handles = [memoryview(f(X * k, X)._buffer) for k in range(50)]
    for k in range(50):
        expected = np.asarray(X) ** 2 * k + 1
        for found in (results[k], views[k], handles[k]):
            np.testing.assert_array_equal(np.asarray(found), expected)


def test_memory_of_dropped_results_is_used_again():
    f = tiny()
    warmed(f, X, X)
    places = set()
    for _ in range(100):
        places.add(f(X, X)._buffer.ctypes.data)
    assert len(places) <= 4


def test_large_results():
    f, x = tiny(), jnp.ones(2**18)
    kept = [warmed(f, x * k, x) for k in range(6)]
    for k, y in enumerate(kept):
        assert (y._buffer == k + 1).all() and y._buffer.ctypes.data % 64 == 0


def references(*objects):
    return [sys.getrefcount(x) for x in objects]


def test_references_are_counted():
    f = jit(lambda tree, a: {"s": (tree["x"] * a, [tree["x"]])}, backend=BACKEND)
    tree, number = {"x": X + 0}, 123.5
    warmed(f, tree, number)
    watched = [tree, tree["x"], tree["x"]._buffer, number, X.device, X.dtype]
    watched += [ArrayImpl, np.ndarray, f, *f._ready.chain]
    before = references(*watched)
    for _ in range(1000):
        f(tree, number)
    assert references(*watched) == before
    other = {"x": X[::2]}
    f(other, number)
    watched = watched[:4]
    before = references(*watched)
    for _ in range(100):
        f(other, number)
    assert references(*watched) == before


def test_functions_and_records_go():
    import weakref

    f = tiny()
    warmed(f, X, X)
    gone, record = weakref.ref(f), weakref.ref(f._ready)
    del f
    gc.collect()
    assert gone() is None and record() is None


def test_garbage_is_collected_in_the_middle():
    def many(t):
        return [{"a": t[0] + k, "b": (t[1], [t[0]])} for k in range(5)]

    f = jit(many, backend=BACKEND)
    expected = warmed(f, (X, X))
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(200):
            found = f((X, X))
    finally:
        gc.set_threshold(*threshold)
    same(found, expected)


def test_caches_are_cleared():
    traced = []
    f = jit(lambda x: traced.append(1) or x + 1, backend=BACKEND)
    for clear in (f.clear_cache, minijax.clear_caches):
        warmed(f, X)
        count = len(traced)
        clear()
        f(X)
        assert len(traced) == count + 1


def test_copies_and_methods():
    f = tiny()
    warmed(f, X, X)
    other = copy.copy(f)
    assert type(other) is FastPathFunction
    warmed(other, X, X)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(f)

    class Model:
        scale = 2.0

        @jit
        def double(self, x):
            return x * 2

        call = jit(lambda self, x: x * self.scale, static_argnums=0, backend=BACKEND)

    same(warmed(Model().call.__func__, Model, X), X * 2)
    model = Model()
    for _ in range(4):
        same(model.call(X), X * 2)
    assert repr(f).startswith("<PjitFunction of") and f.__wrapped__


def test_threads_in_one_function():
    def loop(x, y):
        return lax.fori_loop(0, 50, lambda i, x: jnp.sin(x) + y, x)

    f, g, failures = jit(loop, backend=BACKEND), tiny(), []

    def work(k):
        x = jnp.full((300,), float(k))
        expected = [np.asarray(f(x, x)), np.asarray(g(x, X[:1]))]
        for _ in range(200):
            found = f(x, x), g(x, X[:1])
            if not all(np.array_equal(a, b) for a, b in zip(found, expected)):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_records_go_while_calls_are_made():
    f, failures, stop = tiny(), [], threading.Event()

    def work(k):
        x = jnp.arange(k + 1.0)
        expected = np.asarray(x) ** 2 + 1
        while not stop.is_set():
            if not np.array_equal(f(x, x), expected):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for _ in range(40):
            f.clear_cache()
            minijax.clear_caches()
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not failures


def test_long_programs_let_others_run():
    f = jit(lambda x: jnp.exp(jnp.sin(x)) @ x.T, backend=BACKEND)
    x = jnp.ones((700, 700)) / 700
    warmed(f, x)
    ticks, start = [], threading.Event()
    thread = threading.Thread(target=lambda: start.wait() and ticks.append(1))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody gives way unless asked to
    try:
        start.set()
        end = time.monotonic() + 30
        while not ticks and time.monotonic() < end:
            f(x)
        assert ticks
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_programs_with_callbacks():
    seen = []

    def f(x):
        minijax.debug.callback(lambda y: seen.append(float(y)), x.sum())
        return x + 1

    f = jit(f, backend=BACKEND)
    for _ in range(4):
        same(f(X), X + 1)
    assert seen == [6.0] * 4


def run(program, **variables):
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, text=True,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


SECOND = """
import minijax.numpy as jnp
from minijax import jit
x = jnp.arange(3.0)
f = jit(lambda x: x + 1, backend="cpu")
for _ in range(101):
    f(x)
print(len(f._ready.chain), sum(f._ready.seen.values()))
"""


MANY = """
import minijax.numpy as jnp
from minijax import jit
f, tree = jit(lambda tree: [x + 1 for x in tree], backend="cpu"), [jnp.ones(3)] * 200
for _ in range(20):
    tree = f(tree)
print(len(f._ready.chain), sum(f._ready.seen.values()))
"""


def test_calls_with_many_leaves_are_warm_sooner():
    records, calls = map(int, run(MANY).split())
    assert records == 1 and calls < 16


def test_the_gate_can_be_switched_off():
    assert run(SECOND).split() == ["1", "98"]
    assert run(SECOND, MINIJAX_FAST_PATH="0").split() == ["0", "101"]


def test_other_layouts_are_left_to_python(monkeypatch):
    def refuse():
        raise UnknownLayout("a test")

    monkeypatch.setattr(gated_functions, "check_layout", refuse)
    refused = gated_functions._proved()
    assert isinstance(refused, UnknownLayout)
    monkeypatch.setattr(gated_functions, "_opened", [refused])
    with pytest.raises(UnknownLayout, match="a test"):
        enable_fastpath()
    f = tiny()
    for _ in range(4):
        same(goes_through_python(f, X, X), X * X + 1)
    assert not f._ready.chain


FORK = """
import os, threading
import minijax.numpy as jnp
from minijax import jit
x = jnp.arange(4.0)
f = jit(lambda x: jnp.sin(x) + 1, backend="cpu")
for _ in range(4):
    f(x)
stop = threading.Event()
def busy(k=0):
    while not stop.is_set():
        k += 1
        jit(lambda x: x * k, backend="cpu")(x)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads: thread.start()
for turn in range(5):
    child = os.fork()
    if child == 0:
        f(x)
        jit(lambda x: x - 1.5, backend="cpu")(x)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set()
for thread in threads: thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forks():
    assert run(FORK).strip() == "done"


OPENED_MEANWHILE = """
from minijax import jit
from minijax.dispatch import fastpath_functions as gated_functions
made = gated_functions.SignatureCache
class Meanwhile(made):
    def METHOD(self, *args):
        super().METHOD(*args)
        gated_functions.SignatureCache = made
        gated_functions.enable_fastpath()  # by another thread
gated_functions.SignatureCache = Meanwhile
f = jit(lambda x: x + 1, backend="cpu")
print([float(f(2.0)) for _ in range(5)])
"""


@pytest.mark.parametrize("method", ["unlock", "__init__"])
def test_the_gate_is_opened_while_a_function_is_made(method):
    """Before its records are known, and after."""
    text = OPENED_MEANWHILE.replace("METHOD", method)
    assert run(text).strip() == "[3.0, 3.0, 3.0, 3.0, 3.0]"


FORK_WHILE_OPENING = """
import os, signal, threading
import minijax.numpy as jnp
from minijax import jit
from minijax.dispatch import fastpath_functions as gated_functions
f = jit(lambda x: jnp.sin(x) + 1, backend="cpu")
f(1.0)
opening, forked = threading.Event(), threading.Event()
def open_slowly():
    with gated_functions._lock:
        opening.set()
        forked.wait(100)
thread = threading.Thread(target=open_slowly)
thread.start()
opening.wait(100)
child = os.fork()
if child == 0:
    signal.alarm(100)
    for _ in range(100):
        f(1.0)
    assert f._ready.chain or not gated_functions.SignatureCache.around
    os._exit(7)
forked.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_the_gate_is_opened():
    assert run(FORK_WHILE_OPENING).strip() == "7"


def test_masked_arrays_are_refused_by_name():
    f = jit(lambda tree: tree["a"] + 1)
    warmed(f, {"a": np.ones(2, np.float32)})
    masked = np.ma.masked_array(np.ones(2, np.float32), [0, 1])
    with pytest.raises(ValueError, match=r"tree\['a'\].*masked arrays"):
        f({"a": masked})
    for use in (
        grad(lambda x: x.sum()), vmap(jnp.sin), minijax.jacfwd(jnp.sin), jit(jnp.sin),
        lambda m: minijax.jvp(jnp.sin, (np.ones(2, "f"),), (m,)),
        lambda m: minijax.vjp(jnp.sin, np.ones(2, "f"))[1](m),
        lambda m: jit(lambda: m)(), lambda m: jit(lambda x: x + m)(np.ones(2, "f")),
        lambda m: lax.scan(lambda c, x: (c, x), 0.0, m),
        lambda m: lax.scan(lambda c, x: (c, x), m, jnp.ones(2)),
        lambda m: lax.cond(True, lambda x: x, lambda x: x, m),
        lambda m: lax.fori_loop(0, 2, lambda i, x: x, m),
        lambda m: lax.while_loop(lambda x: False, lambda x: x, m),
        lambda m: minijax.eval_shape(lambda: m), minijax.make_jaxpr(jnp.sin),
        lambda m: minijax.pure_callback(lambda x: x, m, m),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="masked arrays are not supported"):
            use(masked)


SMALL_STACK = """
import threading
import minijax.numpy as jnp
from minijax import jit
leaves = [jnp.zeros(())] * {leaves}
def work():
    f = jit(lambda leaves: leaves[0] + 1, backend="cpu")
    for _ in range(100):
        assert f(leaves) == 1
    print(len(f._ready.chain), len(f._ready.seen))
threading.stack_size({stack})
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_very_many_leaves_in_a_thread_with_a_small_stack():
    program = SMALL_STACK.format(leaves=12_000, stack=256 * 1024)
    assert run(program).split() == ["1", "1"]


def test_deep_trees_are_left_to_python():
    tree = X
    for _ in range(100):
        tree = [tree]
    f = jit(lambda tree: tree, backend=BACKEND)
    for _ in range(4):
        same(f(tree), tree)
    assert not f._ready.chain


def test_threads_that_donate_and_register():
    f = jit(lambda box, y: Box("t", box.items[0] + y), donate_argnums=0)
    failures = []

    def work(k):
        step = jnp.asarray(np.full(4, k, np.float32))
        box = Box("t", step * 0)
        for _ in range(300):
            given = box.items[0]
            box = f(box, step)
            if not given.is_deleted():
                failures.append("not deleted")
        if not (np.asarray(box.items[0]) == 300 * k).all():
            failures.append(np.asarray(box.items[0]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
