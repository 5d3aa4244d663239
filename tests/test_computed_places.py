"""Primitives of a user whose kernels gather, scatter and run, on every backend."""

import numpy as np
import pytest

from minijax import jit
from minijax import numpy as jnp
from minijax.extend.core import Primitive
from minijax.kernels.builder import KernelBuilder
from minijax.kernels.lowering import kernel_rules
from tests.backends_here import HERE

F32, INT64 = np.float32, np.dtype("int64")
TABLE = np.arange(21, dtype="float32").reshape(7, 3) / 4
PLACES = np.array([6, -1, 2, 2, 7, 0, 2, 1000, -1000], "int32")
ROWS = np.linspace(-1, 1, 27, dtype="float32").reshape(9, 3)


def primitive(name, evaluate, kernel):
    """A primitive by NumPy's way and by a kernel rule; it has its first shape."""
    made = Primitive(name)
    made.def_impl(lambda *args: evaluate(*map(np.asarray, args)))
    made.def_abstract_eval(kernel.shape_of)
    kernel_rules[made] = kernel
    return made


def row_zero(x, shape):
    """The first row of an array, as each row of an array of another shape."""
    return x.replace(shape, (0, x.strides[1]))


def in_rows(x, shape):
    """An array with one axis, as each column of an array of another shape."""
    return x.replace(shape, (*x.strides, 0))


def take_rule(lowering, eqn, table, places):
    """Rows of a table; NaN where there is none."""
    [var] = eqn.outvars
    k = KernelBuilder("take", var.aval.shape)
    v = k.convert(k.load(in_rows(places, var.aval.shape)), INT64)
    found = row_zero(table, var.aval.shape)
    terms = [(v, table.strides[0], table.shape[0])]
    return [lowering.launch(k, k.load(found, other=np.nan, terms=terms), var.aval)]


take_rule.shape_of = lambda table, places: table.update(
    shape=(places.shape[0], table.shape[1])
)


def take(table, places):
    inside = (places >= 0) & (places < len(table))
    return np.where(inside[:, None], table[np.where(inside, places, 0)], F32(np.nan))


def enter_rule(how):
    """The rule that lets rows enter a table."""

    def rule(lowering, eqn, table, places, rows):
        [var] = eqn.outvars
        out = lowering.copy(table)
        k = KernelBuilder(f"enter_{how}", rows.shape)
        v = k.load(in_rows(places, rows.shape))
        terms = [(k.convert(v, INT64), out.strides[0], out.shape[0])]
        k.update(row_zero(out, rows.shape), k.load(rows), how, terms)
        lowering.run(k)
        return [out]

    rule.shape_of = lambda table, places, rows: table
    return rule


def enter(how):
    def evaluate(table, places, rows):
        found = np.array(table)
        for place, row in zip(places, rows):
            if 0 <= place < len(found):
                old = found[place]
                found[place] = WAYS[how](old, row)
        return found

    return evaluate


WAYS = {
    "set": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
TAKE = primitive("take_rows", take, take_rule)
ENTER = {how: primitive(f"enter_{how}", enter(how), enter_rule(how)) for how in WAYS}


@pytest.mark.parametrize("backend", HERE)
def test_rows_are_taken(backend):
    f = jit(lambda x, n: TAKE.bind(x + 1, 1 * n) * 2, backend=backend)
    wanted = take(TABLE + 1, PLACES) * 2
    np.testing.assert_array_equal(f(TABLE, PLACES), wanted)
    assert np.isnan(wanted).any()


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("backend", HERE)
def test_rows_enter(backend, how):
    def f(x, n, rows):
        new = ENTER[how].bind(x * 3, n, rows - 1)
        return new, new.sum(0), ENTER[how].bind(new, n + 1, rows)

    wanted = enter(how)(TABLE * 3, PLACES, ROWS - 1)
    again = enter(how)(wanted, PLACES + 1, ROWS)
    found = jit(f, backend=backend)(TABLE, PLACES, ROWS)
    for ours, right in zip(found, (wanted, wanted.sum(0), again), strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-6)


@pytest.mark.parametrize("backend", HERE)
def test_the_table_may_be_donated(backend):
    f = jit(
        lambda x, n, rows: ENTER["add"].bind(x, n, rows),
        backend=backend,
        donate_argnums=0,
    )
    wanted = enter("add")(TABLE, PLACES, ROWS)
    np.testing.assert_allclose(f(jnp.asarray(TABLE), PLACES, ROWS), wanted, rtol=1e-6)
    x = jnp.asarray(TABLE)
    kept = jit(lambda x, n, rows: (ENTER["add"].bind(x, n, rows), x), backend=backend)
    np.testing.assert_array_equal(kept(x, PLACES, ROWS)[1], TABLE)
    np.testing.assert_array_equal(x, TABLE)
