"""The name jax, for test-suites that are run over minijax; nothing else is here.

A program that finds this folder before any other on its path, and says `import jax`,
gets the package minijax, and `jax.numpy` is `minijax.numpy`, the same module.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys

import minijax

# Modules of JAX that are not public, and that a suite imports all the same: with what
# it reads of them. A program that asks for more fails there.
PRIVATE: dict[str, dict] = {
    "jax._src": {},
    "jax._src.compiler": {},  # chex looks whether it has functions to replace
    "jax._src.xla_bridge": {"_backends": None},  # none that XLA has started
}


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `jax.x` by importing `minijax.x`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] == "jax":
            return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module):
        name = module.__name__
        if name in PRIVATE:
            vars(module).update(PRIVATE[name], __path__=[])
            return
        try:
            found = importlib.import_module("mini" + name)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("minijax"):
                raise ModuleNotFoundError(f"No module named {name!r}") from None
            raise
        sys.modules[name] = found


sys.meta_path.insert(0, Alias())
sys.modules["jax"] = minijax
for private in PRIVATE:
    importlib.import_module(private)
minijax.__version__ = "0.10.2"  # the version of JAX whose names these are
