"""What holds several results, its name, and whether a result of numbers is weak."""

from importlib import import_module

import jax
import numpy as np
import pytest

import minijax

SEVERAL = {
    "top_k": lambda m, x: m.lax.top_k(x[0], 2),
    "approx_max_k": lambda m, x: m.lax.approx_max_k(x, 1),
    "approx_min_k": lambda m, x: m.lax.approx_min_k(x, 1),
    "sort": lambda m, x: m.lax.sort((x, x)),
    "eig": lambda m, x: m.numpy.linalg.eig(x),
    "eigh": lambda m, x: m.numpy.linalg.eigh(x),
    "qr": lambda m, x: m.numpy.linalg.qr(x),
    "svd": lambda m, x: m.numpy.linalg.svd(x),
    "slogdet": lambda m, x: m.numpy.linalg.slogdet(x),
    "lstsq": lambda m, x: m.numpy.linalg.lstsq(x, x[0]),
    "schur": lambda m, x: scipy(m, "linalg").schur(x),
    "lu": lambda m, x: scipy(m, "linalg").lu(x),
    "cho_factor": lambda m, x: scipy(m, "linalg").cho_factor(x),
    "lax.lu": lambda m, x: m.lax.linalg.lu(x),
    "lax.svd": lambda m, x: m.lax.linalg.svd(x),
    "mode": lambda m, x: scipy(m, "stats").mode(x),
    "unique": lambda m, x: m.numpy.unique(x, return_counts=True),
    "unique_all": lambda m, x: m.numpy.unique_all(x),
    "unique_counts": lambda m, x: m.numpy.unique_counts(x),
    "unique_inverse": lambda m, x: m.numpy.unique_inverse(x),
    "split": lambda m, x: m.numpy.split(x, 2),
    "meshgrid": lambda m, x: m.numpy.meshgrid(x[0], x[0]),
    "histogram": lambda m, x: m.numpy.histogram(x),
    "gradient": lambda m, x: m.numpy.gradient(x),
    "broadcast_arrays": lambda m, x: m.numpy.broadcast_arrays(x, 1),
    "divmod": lambda m, x: m.numpy.divmod(x, 2),
    "reduce": lambda m, x: m.lax.reduce((x, x), (0.0, 0.0), paired_sum, (0,)),
}


def scipy(m, name):
    return import_module(f"{m.__name__}.scipy.{name}")


def paired_sum(first, second):
    return first[0] + second[0], first[1] + second[1]


@pytest.mark.parametrize("name", SEVERAL)
def test_results_are_held_as_in_jax(name):
    found = []
    for m in (minijax, jax):
        result = SEVERAL[name](m, m.numpy.array([[2.0, 1.0], [1.0, 3.0]]))
        compiled = m.jit(lambda x, m=m: SEVERAL[name](m, x))
        trees = [m.tree_util.tree_structure(result)]
        if not name.startswith("unique"):  # their sizes are not known in a program
            trees.append(m.tree_util.tree_structure(compiled(m.numpy.eye(2))))
        found.append([type(result).__name__, *map(str, trees)])
    assert found[0] == found[1]


WEAK = {
    "rel_entr": (0.2, 0.3), "kl_div": (0.2, 0.3), "entr": (0.2,), "xlogy": (0.2, 0.3),
    "expn": (1, 2.0), "exp1": (1.0,), "expi": (1.0,), "sici": (1.0,),
    "fresnel": (1.0,), "owens_t": (1.0, 2.0), "hyp1f1": (1.0, 2.0, 0.3),
    "hyp2f1": (1.0, 2.0, 3.0, 0.3), "spence": (0.3,), "wofz": (0.3 + 1j,),
    "erfcx": (1.0,), "dawsn": (1.0,), "erf": (0.3,), "gammaln": (2.0,),
    "betaln": (1.0, 2.0), "zeta": (2.0, 1.0), "i0": (1.0,), "ndtri": (0.3,),
    "boxcox": (2.0, 0.3), "poch": (1.0, 2.0), "gammainc": (1.0, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WEAK)
def test_results_of_numbers_are_as_weak_as_in_jax(name):
    found = []
    for m in (minijax, jax):
        function = getattr(scipy(m, "special"), name)
        *others, last = WEAK[name]
        several = [function(*others, x) for x in (last, m.numpy.asarray([last]))]
        leaves = m.tree_util.tree_leaves(several)
        found.append([(x.weak_type, str(x.dtype)) for x in leaves])
    assert found[0] == found[1]


TEXTS = [
    ("1.5", "float32"), ("3", "int32"), (["1", "2.5"], "float32"), (b"2", "float32"),
    ([["1", "2"], ["3", "4"]], "int8"), (np.array(["1.5", "nan"]), "float32"),
    (np.str_("7"), "int32"), ([1.5, "2"], "float32"), ("1e3", "complex64"),
    ("a", "float32"), ("1.5", "int32"), (["1", "b"], "int32"), ("1.5", None),
    (["1"], None), (np.array(["1"]), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dtype"), TEXTS, ids=repr)
def test_text_is_read_as_numbers_of_a_dtype(text, dtype):
    found = []
    for m in (minijax, jax):
        try:
            result = m.numpy.array(text, dtype)
            found.append((str(result.dtype), np.asarray(result).tolist()))
        except (TypeError, ValueError) as error:
            found.append(type(error).__name__)
    if dtype is None:  # in JAX a ValueError for lists, and a TypeError for others
        assert found[0] == "TypeError" and found[1] in ("TypeError", "ValueError")
    else:
        np.testing.assert_equal(*found)
