"""An import hook: ``import jax`` finds modules that answer with what minijax has."""

# Made from chapters/42_as_jax.md by `make chapter`;
# edit the chapter, not this file.

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from types import ModuleType

from minijax._public import PUBLIC

VERSION = "0.10.2"  # of the JAX whose names and meaning these are
PACKAGES = "jax", "jaxlib"


def is_public(module):
    """Whether users of minijax can import the counterpart of a module of JAX."""
    ours = f"mini{module}"
    return any(f"{each}.".startswith(f"{ours}.") for each in PUBLIC)


asked: dict[str, str] = {}  # names of JAX that the program has asked for, and where
missing: dict[str, str] = {}  # those among them that are not here


def place_of_caller():
    """Return file and line of the code that asks: the first outside of this package."""
    frame = sys._getframe(1)
    while frame and _is_between(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


def _is_between(module):
    return module.startswith(("minijax.", "importlib."))


_NUMBERS = tuple(map(int, VERSION.split(".")))
_VERSIONS = {"__version__": VERSION, "__version_info__": _NUMBERS}


def stand_ins():
    """Return the table of private names that packages ask for."""
    return import_module("minijax.as_jax.private_names").STAND_INS


def answer(module, name):
    """Return what the name of a module of JAX is here.

    Raises:
      AttributeError: there is no such thing here.
    """
    whole = f"{module}.{name}"
    if name in _VERSIONS and module in (*PACKAGES, "jax.version", "jaxlib.version"):
        return _VERSIONS[name]
    if whole in stand_ins():
        return _object_of(stand_ins()[whole])
    if is_module(whole):
        return import_module(whole)
    if f"mini{module}" not in sys.modules:
        raise AttributeError(why_not(whole))
    return getattr(sys.modules[f"mini{module}"], name)


def _object_of(row):
    module, _, name = row.place.rpartition(".")
    return getattr(import_module(module), name) if module else row.value


_EXTRA = "jax.version", "jaxlib", "jaxlib.version", "jax._src", "jax._src.compiler"


def is_module(name):
    """Whether a module of JAX can be imported: public, or one that packages ask for."""
    if name in _EXTRA or is_public(name):
        return True
    return any(row.startswith(f"{name}.") for row in stand_ins())


def public_places(name):
    """Return public names and modules that end in a word, the three shortest."""
    found = [f"{m}.{name}" for m, names in PUBLIC.items() if name in names]
    found += [module for module in PUBLIC if module.rpartition(".")[2] == name]
    return sorted((each.removeprefix("mini") for each in found), key=len)[:3]


def why_not(whole):
    """Return the sentence that refuses a name which is not public."""
    if whole.startswith("jaxlib"):
        return (
            f"{whole} belongs to the compiled runtime of XLA. minijax has none: it "
            "makes machine code by itself. A program that needs it needs JAX."
        )
    serve = public_places(whole.rpartition(".")[2].lstrip("_"))
    words = f"The public {' or '.join(serve)} serves."
    way = words if serve else "No public name fits."
    return f"{whole} is private to JAX, and no package that we know asks for it. {way}"


def source_of(module):
    """Return the module of minijax that is asked, or this one if there is none."""
    return sys.modules.get(f"mini{module}", sys.modules[__name__])


def shown_by_python(error, module, name):
    """Return an error whose sentence is seen where a name is imported, too."""
    if sys._getframe(2).f_code.co_name != "_handle_fromlist":
        return error
    return ImportError(f"cannot import name {name!r}: {error}", name=module)


_DUNDERS = "__all__", "__array_api_version__", "__array_namespace_info__"


class Alias(ModuleType):
    """A module of the name jax: what it is asked for, minijax answers."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in (*_VERSIONS, *_DUNDERS):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        whole = f"{self.__name__}.{name}"
        asked.setdefault(whole, place_of_caller())
        try:
            value = answer(self.__name__, name)
        except AttributeError as error:
            missing.setdefault(whole, asked[whole])
            raise shown_by_python(error, self.__name__, name) from None
        if name in _VERSIONS or name in vars(source_of(self.__name__)):
            vars(self)[name] = value
        return value

    def __dir__(self):
        rows = [row.rpartition(".") for row in stand_ins()]
        own = [name for module, _, name in rows if module == self.__name__]
        return sorted({*vars(self), *own, *dir(source_of(self.__name__))})


class Metadata(Distribution):
    """What an installer would have written down about JAX."""

    def __init__(self, package):
        self.texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {VERSION}\n",
            "top_level.txt": f"{package}\n",
        }

    def read_text(self, filename):
        return self.texts.get(filename)

    def locate_file(self, path):
        return path


def _is_object(name):
    """Whether a name of a public module can be imported, though it is no module."""
    parent, _, last = f"mini{name}".rpartition(".")
    if last not in PUBLIC.get(parent, ()):
        return False
    getattr(import_module(parent), last)
    return f"mini{name}" in sys.modules


class Finder(MetaPathFinder, Loader):
    """Finds the modules of JAX, and the records of its installation."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        asked.setdefault(fullname, place_of_caller())
        if is_module(fullname) or _is_object(fullname):
            return ModuleSpec(fullname, self, is_package=True)
        missing.setdefault(fullname, asked[fullname])
        if fullname.startswith(("jax._src", "jaxlib")):
            raise ModuleNotFoundError(why_not(fullname), name=fullname)
        return None

    def create_module(self, spec):
        return Alias(spec.name)

    def exec_module(self, module):
        """Import what the module stands for, and take over its text and its file."""
        if is_public(module.__name__):
            source = import_module(f"mini{module.__name__}")
            module.__doc__, module.__file__ = source.__doc__, source.__file__

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        wanted = PACKAGES if name is None else (name.lower(),)
        return [Metadata(each) for each in PACKAGES if each in wanted]


def install(version: str = VERSION) -> None:
    """Let ``import jax`` and ``import jaxlib`` mean minijax in this process.

    Nothing is installed, and a JAX that is there is not touched.

    Args:
      version: that of JAX which the program is written for.

    Raises:
      RuntimeError: real JAX has been imported.
      ValueError: a version whose names and meaning are not those of minijax.
    """
    if version != VERSION:
        raise ValueError(
            f"minijax has the names and the meaning of jax {VERSION}, not of "
            f"{version!r}: leave the version out, or use JAX."
        )
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    for name in PACKAGES:
        real = sys.modules.get(name)
        if real is not None:
            raise RuntimeError(
                f"{name} has been imported already, from {real.__file__}: arrays of "
                "two kinds would meet. Install minijax under the name first, with "
                "`python -m minijax.as_jax`, or in the first lines of the program."
            )
    sys.meta_path.insert(0, Finder())


def uninstall() -> None:
    """Let ``import jax`` mean again what it meant; modules that have it keep it."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, Finder)]
    for name in [*sys.modules]:
        if name.partition(".")[0] in PACKAGES and type(sys.modules[name]) is Alias:
            del sys.modules[name]
