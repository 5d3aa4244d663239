"""Each identity on the worst numbers there are: it holds, or somebody knows why not."""

import itertools

import numpy as np
import pytest

from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.arrays.dtypes import SHORT_DTYPE_NAMES, dtype_kind
from minijax.arrays.numerics import integer_limits
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from minijax.passes.pipeline import passes, simplify
from minijax.passes.rewriting import literal
from minijax.passes.simplification import Identity, identities
from tests.pass_cases import difference, evaluated

SOME = {"b": "bool", "i": "int8 int32", "u": "uint8", "h": "float16", "f": "float32"}
SOME["c"] = "complex64"
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3e38, 1e-42, np.inf, -np.inf, np.nan]


def nasty(dtype):
    """Return the numbers of a dtype with which something is the matter."""
    kind = dtype_kind(dtype)
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        least, most = integer_limits(np.dtype(dtype))
        return np.array([0, 1, 2, 3, 7 % (most + 1), most, least, most - 1], dtype)
    with np.errstate(all="ignore"):
        floats = np.array(FLOATS).astype(dtype)
    if kind != "c":
        return floats
    parts = np.array(FLOATS, "float32")
    return np.array([complex(a, b) for a in parts for b in parts], dtype)


def variables_in(term):
    if isinstance(term, tuple):
        return list(dict.fromkeys(sum(map(variables_in, term[1:]), [])))
    return [term] if isinstance(term, str) else []


def written(term, names, eqns, dtype):
    """Return what stands for a term, after the equations for it."""
    from minijax.arrays.array import shape_rules

    if isinstance(term, str):
        return names[term]
    if not isinstance(term, tuple):
        return literal(np.asarray(term).astype(dtype), ShapedArray((), dtype))
    name, *args = term
    kinds = [dtype] * len(args)
    if name == "select_n":
        kinds[0] = np.dtype(bool)
    operands = [written(arg, names, eqns, kind) for arg, kind in zip(args, kinds)]
    primitive = getattr(lax, f"{name}_p")
    avals = shape_rules[primitive](*[x.aval for x in operands])
    eqns.append(JaxprEqn(operands, list(map(Var, avals)), primitive, {}))
    return eqns[-1].outvars[0]


def program(term, variables, dtype, size):
    """Return a term as a program of vectors."""
    names = {name: Var(ShapedArray((size,), dtype)) for name in variables}
    if "p" in names and not ("eq" in term or "ne" in term):
        names["p"] = Var(ShapedArray((size,), bool))
    if "w" in names:
        names["w"] = Var(ShapedArray((size,), bool))
    eqns = []
    out = written(term, names, eqns, dtype)
    return ClosedJaxpr(Jaxpr([], [*names.values()], [out], eqns), [])


def columns(closed):
    """Return all combinations of nasty numbers for the inputs of a program."""
    rows = [nasty(var.aval.dtype) for var in closed.invars]
    return [np.array(column) for column in zip(*itertools.product(*rows))]


def sides(row, dtype):
    """Return the values of both sides on nasty numbers."""
    variables = variables_in(row.left)
    size = 1
    closed = program(row.left, variables, dtype, size)
    numbers = columns(closed)
    closed = program(row.left, variables, dtype, len(numbers[0]))
    if isinstance(row.right, (tuple, str)):
        right = program(row.right, variables, dtype, len(numbers[0]))
        [y] = evaluated(right, numbers)
    else:
        y = np.full(len(numbers[0]), row.right).astype(closed.out_avals[0].dtype)
    return closed, numbers, evaluated(closed, numbers)[0], np.asarray(y)


CASES = [
    (row, np.dtype(name))
    for row in identities
    for kind, names in SOME.items()
    for name in names.split()
]


def case_id(case):
    return f"{case}" if isinstance(case, Identity) else str(case)


@pytest.mark.parametrize("row, dtype", CASES, ids=case_id)
def test_row(row, dtype):
    """It holds for the kinds it names, is used for them, and fails for the others."""
    try:
        closed, numbers, x, y = sides(row, dtype)
    except TypeError:  # the operation is not for this dtype
        assert dtype_kind(dtype) not in row.kinds
        return
    wrong = difference(x, y)
    first = closed.invars[0].aval.dtype
    if dtype_kind(first) in row.kinds:
        assert not wrong
        new = passes["algebra"](closed)
        assert str(new) != str(closed)
        assert not difference(evaluated(new, numbers)[0], x)
    elif dtype_kind(dtype) in "hf" and not row.kinds or row.note:
        pass
    else:
        assert wrong, "there is no reason to leave this kind out"
    assert not difference(evaluated(simplify(closed), numbers)[0], x)


@pytest.mark.parametrize("row", identities, ids=str)
def test_left_out(row):
    """Where a kind is left out, there are numbers for which the sides differ."""
    if not row.note:
        return
    fails = False
    for kind, names in SOME.items():
        if kind in row.kinds:
            continue
        for name in names.split():
            try:
                _, _, x, y = sides(row, np.dtype(name))
            except TypeError:
                continue
            assert difference(x, y), f"it holds for {name}"
            fails = True
    assert fails


def test_texts():
    assert str(identities[0]) == "x + 0 = x"
    texts = list(map(str, identities))
    assert len(set(zip(texts, [row.left for row in identities]))) == len(texts)
    assert set(SHORT_DTYPE_NAMES) and Literal
