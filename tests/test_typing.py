"""What a user's type checker knows of the package: mypy, with no settings of ours."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from minijax.typing import ArrayLike
from tests.cold_processes import ROOT

USER = """
import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, value_and_grad, vmap


def loss(w: minijax.Array, x: float) -> minijax.Array:
    return jnp.sum(jnp.sin(w * x) ** 2 - w[0])


@jit(static_argnums=0)
def power(n: int, x: float) -> float:
    return x**n


reveal_type(jit(loss))
reveal_type(power(2, 1.0))
reveal_type(grad(loss))
reveal_type(value_and_grad(loss))
reveal_type(vmap(loss))
reveal_type(jnp.sin)
reveal_type(lax.add(1, 2.0) + 1)
reveal_type(-jnp.sin(1.0))
jit(loss).lower(1.0, 2.0)
minijax.tree_util.tree_map(jnp.sin, [1.0])
minijax.tree.map(jnp.sin, [1.0])
minijax.debug.print("{}", 1.0)
minijax.tree.mapp(jnp.sin, [1.0])
minijax.debug.printt("{}", 1.0)
minijax.gradd(loss)
jnp.sinn(1.0)
jnp.sin("text")
jit(loss)("text", 1.0)
jit(loss, static_argnum=1)
power(1.5, 1.0)
vmap(loss)(1.0)
"""

REVEALED = """
Wrapped[[w: Array, x: float], Array]
float
def (w: Array, x: float) -> Any
def (w: Array, x: float) -> tuple[Array, Any]
def (w: Array, x: float) -> Array
def (ArrayLike) -> Array
Array
Array
""".strip().split("\n")

WRONG = """
Module has no attribute "mapp"
Module has no attribute "printt"
Module has no attribute "gradd"
Module has no attribute "sinn"
Argument 1 has incompatible type "str"
Argument 1 to "__call__" of "Wrapped" has incompatible type "str"; expected "Array"
Unexpected keyword argument "static_argnum"
Argument 1 to "__call__" of "Wrapped" has incompatible type "float"; expected "int"
Too few arguments
""".strip().split("\n")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says of the user's file: pairs of a line and a text."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("user")
    (folder / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--no-error-summary"]
    done = subprocess.run(
        [*command, "user.py"], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found = re.findall(r"user.py:(\d+): (.*)", done.stdout)
    assert found, done.stdout + done.stderr
    names = {r"[\w.]+\.(\w+)": r"\1", r"Array \| ndarray.*complex": "ArrayLike"}
    for old, new in names.items():
        found = [(int(line), re.sub(old, new, text)) for line, text in found]
    return found


def test_types_are_known(said):
    found = [re.search('type is "(.*)"', text) for _, text in said]
    assert [match[1] for match in found if match] == REVEALED


def test_mistakes_are_found_and_nothing_else(said):
    lines = {line: text for line, text in reversed(said) if text.startswith("error")}
    assert len(lines) == len(WRONG), said
    for text, wrong in zip(dict(sorted(lines.items())).values(), WRONG):
        assert text.startswith(f"error: {wrong}")


def test_what_is_array_like():
    values = minijax.numpy.ones(2), True, 1, 2.0, 1j
    assert all(isinstance(x, ArrayLike) for x in values)
    assert not isinstance("text", ArrayLike) and not isinstance([1], ArrayLike)


@pytest.mark.parametrize("name", ["tree", "debug"])
def test_a_stub_knows_the_names_that_the_module_hands_out(name):
    text = Path(minijax.__file__).with_name(f"{name}.pyi").read_text(encoding="utf-8")
    given = re.findall(r"^(\w+) = ", text, re.MULTILINE)
    assert given == dir(importlib.import_module(f"minijax.{name}"))
