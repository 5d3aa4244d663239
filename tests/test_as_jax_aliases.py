"""Modules of the name jax: what answers, what is refused, what is left behind."""

import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
from minijax.as_jax import aliases, install, private_names

ROOT = Path(minijax.__file__).parents[1]


def run(text, *flags, **setting):
    """Run a program in a process of its own; return what it says."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **setting}
    done = subprocess.run(
        [sys.executable, *flags, "-c", text], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def as_jax():
    """Put minijax under the name for one test."""
    had = {n: sys.modules.pop(n) for n in [*sys.modules] if n.split(".")[0] == "jax"}
    install()
    yield importlib.import_module("jax")
    aliases.uninstall()
    sys.modules.update(had)


def test_objects_are_the_same_and_modules_are_not(as_jax):
    import jax.numpy as jnp
    from jax import grad, random

    assert jnp.sin is minijax.numpy.sin and grad is minijax.grad
    assert random is not minijax.random and random.key is minijax.random.key
    assert as_jax.__version__ == "0.10.2" != minijax.__version__
    assert as_jax.__version_info__ == (0, 10, 2)
    assert as_jax.numpy is jnp and as_jax.__name__ == "jax"


def test_what_the_array_api_asks_of_a_module(as_jax):
    import jax.numpy as jnp

    assert jnp.__array_api_version__ == minijax.numpy.__array_api_version__
    assert "float32" in jnp.__array_namespace_info__().dtypes()
    with pytest.raises(AttributeError, match="__wrapped__"):
        _ = jnp.__wrapped__


def test_every_public_module_has_an_alias(as_jax):
    public = importlib.import_module("minijax._public").PUBLIC
    for ours in sorted({*public} - {"minijax.__main__"}):
        alias = importlib.import_module(ours.removeprefix("mini"))
        assert type(alias) is aliases.Alias and alias.__name__ == ours[4:]
        assert {*dir(importlib.import_module(ours))} <= {*dir(alias)}


def test_star_imports_take_what_is_public(as_jax):
    space: dict = {}
    exec("from jax.numpy import *", space)
    assert space["sin"] is minijax.numpy.sin and "_sin" not in space


def test_distributions_can_be_imported_as_modules(as_jax):
    norm = importlib.import_module("jax.scipy.stats.norm")
    assert norm.logpdf(0.0) == minijax.scipy.stats.norm.logpdf(0.0)


def test_floors_of_the_book_are_no_modules_of_jax(as_jax):
    for name in ("fusion", "kernels", "as_jax.aliases"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"jax.{name}")


def test_metadata_says_the_version_that_is_meant(as_jax):
    for package in ("jax", "jaxlib", "JAX"):
        assert importlib.metadata.version(package) == "0.10.2"
    assert importlib.metadata.distribution("jax").metadata["Name"] == "jax"
    names = [d.metadata["Name"] for d in importlib.metadata.distributions(name="numpy")]
    assert "jax" not in names


def test_what_is_asked_for_is_written_down_with_the_place(as_jax):
    aliases.asked.clear(), aliases.missing.clear()
    assert as_jax.lax.sin is minijax.lax.sin
    with pytest.raises(AttributeError, match="no attribute 'sine'"):
        as_jax.lax.sine  # noqa: B018
    assert aliases.asked["jax.lax"].rpartition(":")[0] == __file__
    assert aliases.missing["jax.lax.sine"].rpartition(":")[0] == __file__
    assert not hasattr(as_jax.numpy, "sine") and "jax.numpy.sine" in aliases.missing


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("from jax.numpy import sine", "no attribute 'sine'"),
        ("import jax.nothing", "No module named 'jax.nothing'"),
        ("from jax._src.core import ShapedArrays", "private to JAX"),
        ("from jax._src.core import jit", r"The public jax\.jit"),
        ("import jax._src.numpy", r"The public jax\.numpy serves"),
        ("import jaxlib.xla_extension", "compiled runtime of XLA"),
        ("from jaxlib import xla_client", "compiled runtime of XLA"),
    ],
)
def test_what_is_not_here_is_refused_with_a_sentence(as_jax, line, sentence):
    with pytest.raises(ImportError, match=sentence):
        exec(line)


def test_find_spec_says_none_for_what_a_package_may_try(as_jax):
    assert importlib.util.find_spec("jax.nothing") is None
    assert importlib.util.find_spec("jax").name == "jax"


def test_another_version_is_refused():
    with pytest.raises(ValueError, match=r"of jax 0\.10\.2, not of '0\.4\.30'"):
        install("0.4.30")
    assert not any(isinstance(f, aliases.Finder) for f in sys.meta_path)


def test_real_jax_that_is_there_already_is_told_with_its_file(monkeypatch):
    real = type(sys)("jax")
    real.__file__ = "/there/jax/__init__.py"
    monkeypatch.setitem(sys.modules, "jax", real)
    with pytest.raises(RuntimeError, match="imported already, from /there/jax"):
        install()
    assert not any(isinstance(f, aliases.Finder) for f in sys.meta_path)


def test_a_mock_of_a_name_of_jax_is_not_seen_inside(as_jax):
    import unittest.mock

    with unittest.mock.patch.object(as_jax.numpy, "sin", None):
        assert as_jax.numpy.sin is None and minijax.numpy.sin is not None
    assert as_jax.numpy.sin is minijax.numpy.sin


def test_uninstall_leaves_nothing():
    said = run(
        "import sys, minijax.as_jax as a\n"
        "a.install(); import jax.numpy, jaxlib\n"
        "from minijax.as_jax.aliases import uninstall; uninstall()\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib')],\n"
        "      [type(f).__name__ for f in sys.meta_path].count('Finder'))"
    )
    assert said == "[] 0"


def test_nothing_heavy_is_loaded_before_jax_is_asked_for():
    said = run(
        "import sys, minijax.as_jax; minijax.as_jax.install()\n"
        "print('numpy' in sys.modules, 'minijax.core' in sys.modules)"
    )
    assert said == "False False"


def test_each_row_of_private_names_says_who_asks_and_answers(as_jax):
    assert len(private_names.STAND_INS) > 10
    for name, row in private_names.STAND_INS.items():
        module, _, last = name.rpartition(".")
        assert row.users, name
        value = getattr(importlib.import_module(module), last)
        if not row.place:
            assert value is row.value


def test_a_private_name_and_its_public_one_are_one_object(as_jax):
    from jax._src.core import ShapedArray
    from jax._src.flatten_util import ravel_pytree

    assert ravel_pytree is minijax.flatten_util.ravel_pytree
    assert ShapedArray is minijax.core.ShapedArray


def test_trace_state_is_clean_outside_of_transformations_only(as_jax):
    from jax._src.core import trace_state_clean

    seen = []

    def f(x):
        seen.append(trace_state_clean())
        return x * 2.0

    as_jax.jit(f)(1.0), as_jax.vmap(f)(as_jax.numpy.ones(2)), as_jax.grad(f)(1.0)
    assert seen == [False] * 3 and trace_state_clean()


def test_complex_dtypes_of_integers_are_those_of_jax(as_jax):
    from jax._src.dtypes import to_complex_dtype

    narrow = [to_complex_dtype(name) for name in ("int8", "int32", "float16")]
    assert narrow == [np.complex64] * 3
    assert to_complex_dtype("int64") == to_complex_dtype("float64") == np.complex128


def test_the_registry_knows_node_classes(as_jax):
    from jax._src.tree_util import _registry

    class Pair(tuple):
        pass

    assert list in _registry and dict in _registry and Pair not in _registry
    as_jax.tree_util.register_pytree_node(Pair, lambda p: (p, None), lambda _, p: p)
    assert Pair in _registry


def test_callables_with_odd_attributes_are_wrapped(as_jax):
    class Odd:
        __name__, __annotations__ = 5, property(lambda self: None)

        def __call__(self, x):
            return x * 2.0

    assert as_jax.vmap(Odd())(as_jax.numpy.ones(2)).sum() == 4.0
    assert as_jax.grad(Odd())(1.0) == 2.0


def test_check_close_has_tolerances_by_dtype(as_jax):
    from jax._src.public_test_util import check_close

    one = as_jax.numpy.ones(2)
    check_close({"a": one}, {"a": one + 1e-6})
    with pytest.raises(AssertionError):
        check_close(one, one + 1e-4)
    check_close(one, one + 1e-4, rtol=1e-3)
    check_close(one, one + 1e-4, rtol={"float32": 1e-3, "float64": 0.0})
    with pytest.raises(AssertionError):
        check_close(one, one + 1e-4, rtol={"float64": 1.0})
