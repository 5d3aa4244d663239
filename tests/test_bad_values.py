"""Bad values in the place of every argument, and rows that were met that way."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from tests import bad_values
from tests.commands import LONG


def test_no_error_of_a_line_inside_of_the_package():
    found, met = bad_values.faults(every=1 if LONG else 14, count=30)
    assert not found and met > 500


def test_an_error_of_a_line_inside_is_found():
    """A function that asks for an axis which nobody has promised."""
    values = bad_values.bad_values()
    told = bad_values.fault(lambda p: jnp.asarray(p).shape[0], ["0-d"], {}, values)
    assert told.startswith("IndexError")


V = jnp.arange(3.0)
TOO_FEW_AXES = {
    "histogramdd": lambda: jnp.histogramdd(1.0),
    "polyder": lambda: jnp.polyder(2.0),
    "polyint": lambda: jnp.polyint(True),
    "polyval": lambda: jnp.polyval(2.0, 1),
    "polyadd": lambda: jnp.polyadd(2.0, V),
    "polymul": lambda: jnp.polymul(2.0, V, trim_leading_zeros=True),
    "lu_solve": lambda: minijax.scipy.linalg.lu_solve((1.0, 2), 3.0),
    "qr_multiply": lambda: minijax.scipy.linalg.qr_multiply(V, V),
    "hessenberg": lambda: minijax.scipy.linalg.hessenberg(1.0),
    "qdwh": lambda: lax.linalg.qdwh(1.0),
}


@pytest.mark.parametrize("name", TOO_FEW_AXES)
def test_too_few_axes(name):
    with pytest.raises(ValueError, match=rf"{name} takes an array of at least \d ax"):
        TOO_FEW_AXES[name]()


NO_SUCH_AXIS = {
    "split": lambda: jnp.split(1.0, 2),
    "vecdot": lambda: jnp.vecdot(V, V, axis=3),
    "unwrap": lambda: jnp.unwrap(V, axis=2),
    "glu": lambda: minijax.nn.glu(1.0),
    "fftshift": lambda: jnp.fft.fftshift(V, axes=4),
    "dynamic_slice_in_dim": lambda: lax.dynamic_slice_in_dim(V, 0, 1, axis=-9),
    "index_take": lambda: lax.index_take(V, (V.astype(int),), (1,)),
}


@pytest.mark.parametrize("name", NO_SUCH_AXIS)
def test_no_such_axis(name):
    with pytest.raises(ValueError, match="is out of bounds for array of dimension"):
        NO_SUCH_AXIS[name]()


OTHER_KINDS = {
    "trim_zeros": (lambda: jnp.trim_zeros(V, trim=(1,)), "text of f and b"),
    "gather": (lambda: lax.gather(V, np.zeros((1, 1), int), V, (1,)), "DimensionNumb"),
    "tree_unflatten": (lambda: minijax.tree.unflatten(1, []), "no structure"),
    "treedef_tuple": (lambda: minijax.tree_util.treedef_tuple([1]), "no structure"),
    "keystr": (lambda: minijax.tree_util.keystr((), separator=1), "separator"),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_values_of_another_kind(name):
    call, told = OTHER_KINDS[name]
    with pytest.raises(TypeError, match=told):
        call()


def test_places_that_are_no_integers():
    with pytest.raises(ValueError, match="delete takes integers"):
        jnp.delete(V, np.array([0.5]))


@pytest.mark.parametrize("name", ["unique", "unique_counts", "unique_all"])
@pytest.mark.parametrize("fill", [jnp.arange(2), jnp.arange(5), jnp.ones((2, 1), int)])
def test_without_a_size_nothing_is_filled(name, fill):
    x, f = jnp.array([5, 5]), getattr(jnp, name)
    for mine, plain in zip(*map(minijax.tree.leaves, (f(x, fill_value=fill), f(x)))):
        np.testing.assert_array_equal(mine, plain)
    for pair in (jnp.union1d, jnp.intersect1d, jnp.setxor1d):
        found = pair(x, x[:1] + 1, fill_value=fill)
        np.testing.assert_array_equal(found, pair(x, x[:1] + 1))
    with pytest.raises(ValueError, match="fill_value is a scalar"):
        jnp.setdiff1d(x, x, size=2, fill_value=fill)


@pytest.mark.parametrize("n", [2**40, 2**70, np.uint64(2**64 - 1)])
def test_numbers_that_no_loop_could_count_to(n):
    linalg, n = minijax.scipy.linalg, int(n)
    makers = [linalg.helmert, linalg.pascal, linalg.invpascal]
    for make in [minijax.scipy.special.bernoulli, *makers]:
        if n == 2**40 and make is minijax.scipy.special.bernoulli:
            continue  # there may be room for it
        with pytest.raises(Exception, match="Out of memory"):
            make(n)
    assert jnp.diff(V, n).shape == jnp.polyder(V, n).shape == (0,)


def test_bernoulli_beyond_the_largest_float():
    found = np.asarray(minijax.scipy.special.bernoulli(300))
    assert found.shape == (301,) and (found[3::2] == 0).all()
    assert (found[260::4] == -np.inf).all() and (found[262::4] == np.inf).all()
