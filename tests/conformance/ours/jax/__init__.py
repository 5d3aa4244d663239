"""The name jax, for test-suites that are run over minijax; nothing else is here.

A program that finds this folder before any other on its path, and says `import jax`,
gets the package minijax, and `jax.numpy` is `minijax.numpy`, the same module.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys

import minijax


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax.x` by importing `minijax.x`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] == "jax":
            return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module):
        name = module.__name__
        try:
            found = importlib.import_module("mini" + name)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("minijax"):
                raise ModuleNotFoundError(f"No module named {name!r}") from None
            raise
        sys.modules[name] = found


sys.meta_path.insert(0, Alias())
sys.modules["jax"] = minijax
minijax.__version__ = "0.10.2"  # the version of JAX whose names these are
