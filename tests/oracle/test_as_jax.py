"""minijax under the name jax where real JAX is installed as well."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import minijax
from minijax.as_jax import aliases, private_names

ROOT = Path(minijax.__file__).parents[1]


def run(*words):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr.strip().split("\n")[-1]


SAYS = """
import jax, importlib.metadata
print(jax.jit.__module__, importlib.metadata.version("jax"))
"""


def test_the_alias_comes_before_what_is_installed():
    ours = run("-m", "minijax.as_jax", "-c", SAYS)
    assert ours == f"{minijax.jit.__module__} {aliases.VERSION}"
    assert run("-c", SAYS) == f"{jax.jit.__module__} {jax.__version__}"


def test_real_jax_that_was_first_is_named():
    said = run("-c", "import jax, minijax.as_jax; minijax.as_jax.install()")
    assert said.startswith("RuntimeError: jax has been imported already, from ")
    assert jax.__file__ in said


def test_the_version_is_that_of_the_oracle():
    assert jax.__version__ == aliases.VERSION


PRIVATE = [n for n in private_names.STAND_INS if "hijax" not in n]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", PRIVATE)
def test_private_names_are_names_of_jax(name):
    """A row for a name that JAX has lost serves older packages alone."""
    module, _, last = name.rpartition(".")
    lost = {"LiteralArray"}  # of JAX 0.7.2; equinox and jaxtyping look for it
    there = hasattr(__import__(module, fromlist=[last]), last)
    assert there or last in lost
