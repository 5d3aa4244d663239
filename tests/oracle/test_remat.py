"""Forgetful calls beside real JAX: values, programs, residuals and messages."""

import itertools
import re
from importlib import import_module

import jax
import numpy as np
import pytest

import minijax
from tests import own_rules_cases, remat_cases
from tests.commands import some
from tests.oracle.raised import raised

PACKAGES = minijax, jax
FUNCTIONS = tuple(map(remat_cases.functions, PACKAGES))
WAYS = tuple(map(own_rules_cases.transformations, PACKAGES))
PROGRAMS = tuple(map(remat_cases.programs, PACKAGES))
NETWORKS = tuple(map(remat_cases.networks, PACKAGES))
MISTAKES = tuple(map(remat_cases.mistakes, PACKAGES))
DEEP = "wave", "jit inside", "custom jvp", "everything of jit", "closed over"
PLACE = re.compile(r" from \S*/(?=\w+\.py:)")
SILENT = re.compile(r" ?(out_sharding=None|memory_space=\S+Device)")  # not in ours
# JAX writes zero tangents out, and prints a program that is called twice twice.
OTHER_TEXT = {"grad barrier", "grad custom jvp", "grad custom vjp"}
OTHER_TEXT |= {"flags, with a policy"}  # JAX rounds what is kept to its own precision
CASES = [(name, (way,)) for name in FUNCTIONS[0] for way in WAYS[0]]
CASES += [(name, s) for name in DEEP for s in itertools.product(WAYS[0], repeat=2)]
CASES = [case for case in CASES if remat_cases.is_possible(*case)]


@pytest.mark.parametrize(("name", "stack"), some(CASES, 2))
def test_values(name, stack):
    found = []
    for functions, ways in zip(FUNCTIONS, WAYS, strict=True):
        f = functions[name]
        for way in stack:
            f = ways[way](f)
        found.append(np.asarray(f(1.25)))
    np.testing.assert_allclose(*found, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted({*PROGRAMS[0]} - OTHER_TEXT))
def test_texts_of_programs(name):
    texts = []
    for package, programs in zip(PACKAGES, PROGRAMS, strict=True):
        f, args = programs[name]
        texts.append(SILENT.sub("", str(package.make_jaxpr(f)(*args))))
    assert texts[0] == texts[1]


def forgotten_numbers(package, transform):
    """Return what gives results of a checkpoint, two of which are its own numbers."""
    marked = package.checkpoint(lambda x: (x * 2.0, 3.0, np.float32(4)))
    return lambda x: getattr(package, transform)(marked, x)[0]


@pytest.mark.parametrize("transform", ["linearize", "vjp"])
@pytest.mark.parametrize("stack", ["", "jit", "vmap", "jvp", "linearize"])
def test_known_numbers_are_literals_of_the_program_around(transform, stack):
    texts, types = [], []
    for package in PACKAGES:
        f, dtypes = forgotten_numbers(package, transform), []

        def g(x, f=f, dtypes=dtypes):
            outs = f(x)
            dtypes.extend(str(out.dtype) for out in outs)
            return outs

        ways = {"": lambda g: g, "jit": package.jit, "vmap": package.vmap}
        ways["jvp"] = lambda g, j=package: lambda y: j.jvp(g, (y,), (y,))
        ways["linearize"] = lambda g, j=package: lambda y: j.linearize(g, y)[0]
        x = np.ones(3 if stack == "vmap" else (), "float32")
        text = str(package.make_jaxpr(ways[stack](g))(x))
        texts.append(SILENT.sub("", text).replace("np.int64(1)", "1"))
        types.append(dtypes[:3])
    assert texts[0] == texts[1]
    assert types[0] == types[1]


@pytest.mark.parametrize("name", NETWORKS[0])
def test_residuals(name, capsys):
    """The types and the sources are JAX's; so are the lines, but for their files."""
    texts = []
    for package, networks in zip(PACKAGES, NETWORKS, strict=True):
        w, x = package.numpy.ones((3, 3)), package.numpy.ones((2, 3))
        module = import_module(f"{package.__name__}.ad_checkpoint")
        module.print_saved_residuals(networks[name], w, x)
        text = capsys.readouterr().out.replace("closed_call", "scan")  # JAX wraps it
        lines = text.split("\n")
        texts.append(sorted(PLACE.sub(" from ", line) for line in lines))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", sorted(MISTAKES[0]))
def test_messages(name):
    ours, theirs = (raised(mistakes[name]) for mistakes in MISTAKES)
    assert ours == theirs
