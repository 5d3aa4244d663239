"""Values that are equal, and not the same number, are other keys everywhere."""

import enum
import itertools
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import minijax as jax
from minijax import jit, lax, make_jaxpr
from minijax import numpy as jnp
from minijax.arrays.array import shape_rules
from minijax.core import impl_rules
from minijax.extend.core import Primitive
from minijax.jitting.arguments import StaticKey
from minijax.rematerialization.caching import cache_key_of_params, cache_key_of_value


class Two(NamedTuple):
    first: Any


@dataclass(frozen=True)
class Record:
    value: Any


class Level(enum.IntEnum):
    ONE = 1


class Width(float, enum.Enum):
    ONE = 1.0


NUMBERS = [1, True, 1.0, 1 + 0j, np.float32(1), np.float64(1), np.int32(1), np.bool_(1)]
NUMBERS += [np.int8(1), np.complex64(1), Level.ONE, Width.ONE]
ZEROS = [0.0, -0.0, 0, False, complex(0.0, -0.0), np.float32(0), np.float32(-0.0)]
NANS = [float("nan"), -float("nan"), np.float32("nan")]
WRAPPERS = {
    "alone": lambda x: x,
    "in a tuple": lambda x: (x,),
    "in a tuple in a tuple": lambda x: ("x", (x,)),
    "in a named tuple": Two,
    "in a dataclass": Record,
    "in a dataclass in a tuple": lambda x: (Record((x,)),),
    "in a frozen set": lambda x: frozenset([x]),
}


def shown(value):
    """Return text that tells all of the values apart."""
    if isinstance(value, np.generic | float | complex):
        return f"{type(value).__name__} {np.asarray(value).tobytes().hex()}"
    if isinstance(value, tuple | frozenset):
        return f"{type(value).__name__} {[shown(x) for x in value]}"
    return f"Record {shown(value.value)}" if type(value) is Record else repr(value)


def by_jit(record, value):
    @partial(jit, static_argnums=1)
    def f(x, value):
        record(value)
        return x

    return lambda value: f(1.0, value)


def by_jit_name(record, value):
    @partial(jit, static_argnames="value")
    def f(x, value):
        record(value)
        return x

    return lambda value: f(1.0, value=value)


def by_checkpoint(record, value):
    @partial(jax.checkpoint, static_argnums=(1,))
    def f(x, value):
        record(value)
        return x * 2.0

    return lambda value: f(1.0, value)


def by_pmap(record, value):
    @partial(jax.pmap, static_broadcasted_argnums=1)
    def f(x, value):
        record(value)
        return x

    return lambda value: f(np.ones(1, np.float32), value)


def by_nondiff(kind, own):
    def place(record, value):
        @partial(kind, nondiff_argnums=(1,))
        def f(x, value):
            record(value)
            return x

        own(f)
        call = partial(jit, static_argnums=1)(lambda x, value: f(x, value))
        return lambda value: call(1.0, value)

    return place


by_custom_vjp = by_nondiff(
    jax.custom_vjp, lambda f: f.defvjp(lambda x, v: (x, None), lambda v, r, g: (g,))
)
by_custom_jvp = by_nondiff(
    jax.custom_jvp, lambda f: f.defjvp(lambda v, x, t: (x[0], t[0]))
)


def by_loop(record, value):
    def body(value, i, x):
        record(value)
        return x + 1.0

    @partial(jit, static_argnums=1)
    def f(x, value):
        return lax.fori_loop(0, 2, partial(body, value), x)

    return lambda value: f(1.0, value)


def by_scan(record, value):
    @partial(jit, static_argnums=1)
    def f(x, value):
        return lax.scan(lambda c, _: (record(value), (c, c))[1], x, length=2)

    return lambda value: f(1.0, value)


PLACES = {
    name: place for name, place in list(globals().items()) if name.startswith("by_")
}
del PLACES["by_nondiff"]


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("values", [NUMBERS, ZEROS], ids=["ones", "zeros"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_equal_values_are_traced_apart(place, values, wrap):
    """Each value reaches the function, in whatever order they are given."""
    values = [wrap(value) for value in values]
    seen = []
    call = place(seen.append, values[0])
    for value in [*values, *reversed(values)]:
        call(value)
    assert {shown(x) for x in seen} == {shown(x) for x in values}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_keys_tell_equal_values_apart(wrap):
    for values in (NUMBERS, ZEROS, NANS):
        values = [wrap(value) for value in values]
        for first, second in itertools.combinations(values, 2):
            assert cache_key_of_value(first) != cache_key_of_value(second)
            assert StaticKey(first) != StaticKey(second)
            assert cache_key_of_params({"x": first}) != cache_key_of_params(
                {"x": second}
            )
        for value in values:
            assert cache_key_of_value(value) == cache_key_of_value(value)
            assert hash(StaticKey(value)) == hash(StaticKey(value))


def test_units_of_dates_are_part_of_a_key():
    day, month = np.datetime64(1, "D"), np.datetime64(1, "M")
    assert cache_key_of_value(day) != cache_key_of_value(month)
    assert cache_key_of_value(day) == cache_key_of_value(np.datetime64(1, "D"))


def test_nan_is_one_static_value():
    seen = []
    f = jit(lambda x, value: (seen.append(value), x)[1], static_argnums=1)
    for _ in range(3):
        f(1.0, float("nan"))
        f(1.0, ("a", float("nan")))
    assert len(seen) == 2


def test_a_dataclass_whose_hash_leaves_a_field_out():
    @dataclass(frozen=True)
    class Named:
        name: str
        rows: list

        def __hash__(self):
            return hash(self.name)

    seen = []
    f = jit(lambda x, value: (seen.append(value), x)[1], static_argnums=1)
    for rows in ([1], [1], [2]):
        f(1.0, Named("a", rows))
    assert [value.rows for value in seen] == [[1], [2]]


def test_parameters_of_primitives_that_are_equal_and_differ():
    """Subexpressions are shared, and programs of operations kept, by parameters."""
    told_p = Primitive("told")
    shape_rules[told_p] = lambda x, value: [x]

    def told(x, value):
        wide = np.asarray(x._numbers())
        number = np.copysign(1.0, value) + isinstance(value, float)
        return [jnp.asarray(wide * np.float32(number))]

    impl_rules[told_p] = told
    values = [0.0, -0.0, 0, np.float32(0)]

    def f(x):
        return [told_p.bind(x, value=value) for value in values]

    x = jnp.ones(2)
    expected = [2.0, 0.0, 1.0, 1.0]
    assert [float(y[0]) for y in f(x)] == expected
    assert len(make_jaxpr(f)(x).eqns) == 4
    assert [float(y[0]) for y in jit(f)(x)] == expected
