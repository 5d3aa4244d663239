# Made from chapters/01_interception.md by `make chapter`;
# edit the chapter, not this file.
"""Names that import their module when they are first used (PEP 562)."""

import sys
from importlib import import_module
from pkgutil import iter_modules


def namespace(package):
    """Return ``__getattr__`` and ``__dir__`` for a package whose names load lazily.

    Args:
      package: its dotted name. In the generated module ``minijax._public``,
        ``PUBLIC[package]`` maps its names to the modules that define them, and
        ``REGISTERS`` lists the modules that define no names but fill tables.
    """

    def __getattr__(name):
        names = _names(package)
        if name == "__all__":
            return sorted(names)
        if name.startswith("_") or not name.isidentifier():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = _load(package, name, names.get(name))
        if _wake_registers():
            setattr(sys.modules[package], name, value)
        return value

    def __dir__():
        below = iter_modules(getattr(sys.modules[package], "__path__", ()))
        modules = {module.name for module in below if not module.name.startswith("_")}
        return sorted({*vars(sys.modules[package]), *_names(package), *modules})

    return __getattr__, __dir__


def _names(package):
    return import_module("minijax._public").PUBLIC.get(package, {})


def _wake_registers():
    """Import the modules that fill tables, or return False if it is too early.

    It is too early while another module of the package is half imported, since one
    that registers may need what is still missing there.
    """
    ours = [name for name in [*sys.modules] if name.startswith("minijax.")]
    specs = [getattr(sys.modules.get(name), "__spec__", None) for name in ours]
    if any(getattr(spec, "_initializing", False) for spec in specs):
        return False
    for name in import_module("minijax._public").REGISTERS:
        import_module(name)
    return True


def _load(package, name, module):
    if module is not None:
        return getattr(import_module(module), name)
    try:
        return import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{name}":
            raise
        message = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(message) from None
