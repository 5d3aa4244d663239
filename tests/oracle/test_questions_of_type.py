"""Containers that promise arrays, objects with a type, operators, keys, beside JAX."""

import dataclasses
import operator
from typing import NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import minijax  # noqa: E402

V = np.float32([0.3, 0.1, 0.2])
BOTH = minijax, jax


def names(j):
    """What a case needs, of one package."""
    jnp = j.numpy

    @j.tree_util.register_dataclass
    @dataclasses.dataclass
    class Container:
        x: object

        def __jax_array__(self):
            return jnp.asarray(self.x)

    class Duck:
        shape, dtype = (2, 3), np.dtype("float32")

        def __jax_array__(self):
            raise RuntimeError("asked")

    w, m = Container(V), Container(np.eye(3, dtype="float32") + 1)
    key = j.random.key(0)
    struct = j.ShapeDtypeStruct((2, 3), "float32", weak_type=True)
    known = {"j": j, "jnp": jnp, "lax": j.lax, "np": np, "w": w, "m": m}
    known |= {"k": key, "ks": j.random.split(key, 3), "x": jnp.asarray(V)}
    return known | {"duck": Duck(), "struct": struct}


CASES = """
    jnp.sin(w)  jnp.add(w,w)  jnp.maximum(w,0.2)  jnp.where(w,w,0)  jnp.clip(w,w,w)
    jnp.round(w,1)  jnp.sum(w,where=w)  jnp.max(w,initial=w[0])  jnp.cov(w)
    jnp.cross(w,w)  jnp.average(w,weights=w)  jnp.interp(w,w,w)  jnp.polyval(w,w)
    jnp.unwrap(w)  jnp.select([w],[w],w)  jnp.stack([w,w])  jnp.einsum('ij,j',m,w)
    jnp.add.reduce(w)  jnp.linalg.solve(m,w)  jnp.linalg.norm(w)  jnp.fft.rfft(w)
    j.nn.relu(w)  j.nn.softmax(w)  lax.map(jnp.sin,w)  jnp.isin(w,w)
    jnp.column_stack([w,w])  jnp.put(w,np.array([0]),w,inplace=False)  lax.sin(w)
    lax.add(w,w)  j.jit(jnp.sin)(w)  jnp.zeros_like(duck)  jnp.ones_like(duck)
    jnp.full_like(duck,2)  jnp.shape(duck)  jnp.size(duck)  jnp.result_type(duck)
    lax.dtype(duck)  jnp.zeros_like(struct)  jnp.ones_like(struct,dtype='int8')
    jnp.empty_like(duck,shape=(4,))  lax.dtype(np.float32)  lax.dtype('int32')
    lax.dtype(int)  lax.dtype(None)  lax.dtype([1.])  lax.dtype('ab')  jnp.ones(2,x)
    jnp.array(1,x)  ks+1  ks<1  ks==1  jnp.where(ks==ks,ks,0)  jnp.result_type(ks,1)
    jnp.isclose(ks,ks)  jnp.allclose(ks,ks)  jnp.isclose(ks,1)  jnp.append(ks,0)
    jnp.concatenate([ks,x])  jnp.diagflat(ks)  jnp.round(ks)  jnp.multiply(ks,x)
    jnp.stack([k,1])  k@k  j.random.key_data(jnp.full((2,),k))  jnp.result_type(x,1.5)
    jnp.array_equal(ks,ks)  j.ShapeDtypeStruct.like(np.ones(2)).dtype
    j.ShapeDtypeStruct.like(1.5).weak_type
""".split()


def outcome(call):
    """Dtypes, weakness and numbers of what a call gives, or the class of its error."""
    try:
        found = call()
    except Exception as error:
        return type(error).__name__
    if hasattr(found, "aval") and not str(found.aval).startswith("key"):
        return (
            str(found.dtype),
            found.weak_type,
            np.asarray(found, complex).round(4).tolist(),
        )
    return str(found) if not hasattr(found, "aval") else found.shape


@pytest.mark.parametrize("text", CASES)
def test_as_in_jax(text):
    assert outcome(lambda: eval(text, names(minijax))) == outcome(
        lambda: eval(text, names(jax))
    )


class Pair(NamedTuple):
    a: object
    __radd__ = __rmul__ = __rmatmul__ = __gt__ = __eq__ = lambda self, x: "reflected"
    __hash__ = None


class Rows(list):
    __radd__ = __rmul__ = __rmatmul__ = __gt__ = __eq__ = lambda self, x: "reflected"


OTHERS = [Pair(1), Rows(), [1.0], (1.0,), {1}, {}, None, object(), "a", range(2), 1.5]


@pytest.mark.parametrize("other", OTHERS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("name", "add mul matmul sub truediv eq ne lt ge pow".split())
def test_operators_meet_other_objects_as_in_jax(name, other):
    operate = getattr(operator, name)
    for back in (False, True):
        found = []
        for j in BOTH:
            pair = (j.numpy.asarray(V), other)
            pair = pair[::-1] if back else pair
            found.append(outcome(lambda pair=pair: operate(*pair)))
        assert found[0] == found[1]


# What arrays, and NumPy, need of a dtype of keys; the rest of NumPy's is not there.
OF_NUMPY = {"dtype"}


def test_attributes_of_the_type_of_keys():
    """It has none of a NumPy dtype's but what JAX's has, and the same values."""
    ours, theirs = (module.random.key(0).dtype for module in (minijax, jax))
    names = {*dir(theirs), *dir(np.dtype("float32")), "fields", "names"}
    for name in sorted(each for each in names - OF_NUMPY if each[0] != "_"):
        assert hasattr(ours, name) == hasattr(theirs, name), name
        if name != "type" and hasattr(theirs, name):
            assert getattr(ours, name) == getattr(theirs, name), name
    assert {each for each in dir(ours) if each[0] != "_"} - OF_NUMPY <= {*dir(theirs)}
    assert ours.type.__name__ == theirs.type.__name__


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "bool", "complex64"])
def test_attributes_of_types_of_numbers(name):
    for make in (lambda jnp: getattr(jnp, name), lambda jnp: jnp.ones(2, name).dtype):
        ours, theirs = make(minijax.numpy), make(jax.numpy)
        assert {*dir(theirs)} - {*dir(ours)} == set()
        for each in ("name", "kind", "itemsize", "fields", "names", "shape", "num"):
            mine, right = (getattr(x, each, "none") for x in (ours, theirs))
            assert mine == right or callable(right), each


NO_INTEGERS = [1.0, "float32", [1.0], np.inexact, bool, None, object]


@pytest.mark.parametrize("given", [*NO_INTEGERS, "keys"], ids=str)
def test_limits_of_what_is_no_integer(given):
    for module in (minijax, jax):
        x = (
            module.random.key(0).dtype
            if isinstance(given, str) and given == "keys"
            else given
        )
        with pytest.raises(ValueError):
            module.numpy.iinfo(x)
