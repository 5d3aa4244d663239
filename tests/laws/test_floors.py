"""Law 3: a module rests on its own floor and on lower ones.

That a chapter runs on what exists (law 6) is seen by `make notebooks`, which runs each
on the floors below it; `chapters/conftest.py` sees to that.
"""

import json
import os
import subprocess
import sys
from ast import ImportFrom

import pytest

from book.tools import public
from book.tools.modules import Package
from book.tools.source import DOORS, PACKAGE, ROOT, read_chapters
from book.tools.syntax import all_imports
from tests import cold_processes
from tests.commands import LONG

CHAPTERS = read_chapters()
WHOLE = Package(CHAPTERS)
FLOORS = {m.dotted: m.chapter.floor for m in WHOLE.modules.values()}
LEVELS = sorted({*FLOORS.values()})
DOOR = {"minijax", "minijax._lazy", "minijax._public"}


def run(code, *arguments, folder=ROOT):
    """Run Python in a process of its own; what it prints, as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    result = subprocess.run(command, capture_output=True, env=environment, cwd=folder)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def imported(module):
    """The dotted modules of the package which a made module imports anywhere."""
    code = (ROOT / PACKAGE / f"{module.path}.py").read_text(encoding="utf-8")
    for node in all_imports(code):
        if isinstance(node, ImportFrom):
            for alias in node.names:
                owner = WHOLE.owner(node.module or "", alias.name)
                if owner:
                    yield owner.dotted
        else:
            yield from (a.name for a in node.names if a.name.startswith(f"{PACKAGE}."))


# Floors on top of the package: they import what a package of a stranger could.
LIBRARY = (
    *("distributions", "example_libraries", "experimental/ode", "image"),
    *("numpy/statistics", "scipy", "stablehlo", "training"),
)
INLINED = "A sampler of loops is a call that every backend inlines, as it does jit's."
SPELLED = "Export has a spelling of this primitive, which JAX keeps to itself as well."
TRACED = "`make_jaxpr` takes arrays and structs; this takes the types of an equation."
STORED = "An array comes back with its dtype and place, whatever the switches say now."
# What library floors import besides: by module the names that are not public, and why.
BESIDES = {
    "distributions/inversion": {
        "ExtendedDType": "The dtype of keys, in a signature.",
        "_on_or_off": "The samplers define switches.",
        "trace_context_switches": "One of them decides what a program is.",
        "batch_dim_to_front": "`interpreters.batching`, where JAX is, need not wake.",
        "trace_to_jaxpr": TRACED,
        "KeyedCache inlined_primitives trace_context": INLINED,
    },
    "distributions/discrete": {
        "take_permutation": "A gather that is made of two sorts.",
        "descending_words": "The order of `top_k`, as integers.",
    },
    "numpy/statistics": {"ignore_float_errors": "Ctrl-C may interrupt `np.errstate`."},
    "scipy/linalg/decompositions": {"lu_solve_factors": "JAX's borrows it, too."},
    "scipy/linalg/matrix_functions": {"geqrf_p": "It has no function in `lax.linalg`."},
    "scipy/special/trigamma": {
        "defjvp_unary": "`interpreters.ad`, where JAX has it, need not be awake."
    },
    "training/checkpoints": {"transfer ArrayImpl default_placement": STORED},
    "stablehlo/lowering": {
        "empty_p": SPELLED,
        "CUSTOM_CALL_PRIMITIVES": "All calls are spelled alike.",
        "complex_square_parts": "All backends square alike.",
        "trace_to_jaxpr": TRACED,
    },
    "stablehlo/lowering_rules": {
        "approx_top_k_p random_clone_p random_unwrap_p random_wrap_p": SPELLED,
        "fill_value_in_dtype": "All backends fill alike.",
        "threefry2x32": "The bits of a key are written out.",
    },
    "stablehlo/exported": {
        "check_p debug_callback_p debug_print_p geqrf_p inspect_sharding_p": SPELLED,
        "io_callback_p pure_callback_p pvary_p shard_map_p": SPELLED,
        "DEBUG_PRIMITIVES": "A sink of dead code counts as one.",
        "defjvp_zero": "It has no name in JAX's `interpreters.ad`.",
        "struct_of": "A struct with the axes along which a type varies.",
    },
    "stablehlo/backend": {"text_formats": "It adds a dialect to `as_text`."},
}


def is_library(module):
    """Whether a module is of a floor on top of the package."""
    return module.path.startswith(LIBRARY)


def not_public(module):
    """The names that a module imports of other floors, and no user could."""
    doors = {PACKAGE, *(f"{PACKAGE}.{path}".replace("/", ".") for path in DOORS)}
    code = (ROOT / PACKAGE / f"{module.path}.py").read_text(encoding="utf-8")
    for node in all_imports(code):
        source = getattr(node, "module", "") or ""
        if not isinstance(node, ImportFrom) or source.split(".")[0] != PACKAGE:
            continue
        for alias in node.names:
            owner, dotted = WHOLE.owner(source, alias.name), f"{source}.{alias.name}"
            offered = source in doors or dotted in doors
            own = owner and owner.chapter.floor.number == module.chapter.floor.number
            if not (offered or own or (source, alias.name) == LAZY):
                yield module.path, alias.name


LAZY = f"{PACKAGE}._lazy", "namespace"  # what makes a module of public names


def test_library_floors_import_public_names_alone():
    library = [module for module in WHOLE.modules.values() if is_library(module)]
    found = {pair for module in library for pair in not_public(module)}
    assert len(library) > 40
    assert found == {
        (path, name)
        for path, reasons in BESIDES.items()
        for names in reasons
        for name in names.split()
    }


@pytest.mark.parametrize("module", WHOLE.modules.values(), ids=list(WHOLE.modules))
def test_module_imports_no_higher_floor(module):
    for name in imported(module):
        assert FLOORS[name] <= module.chapter.floor, f"{module.dotted} imports {name}"


def test_importing_the_package_wakes_nothing():
    code = "import json, sys, minijax; print(json.dumps(sorted(sys.modules)))"
    awake = {name for name in run(code) if name.split(".")[0] in (PACKAGE, "numpy")}
    assert awake <= DOOR


IMPORT_ALL = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
modules = [x for x, found in sys.modules.items() if type(found) is type(sys)]
print(json.dumps([name for name in modules if name.startswith("minijax")]))
"""


@pytest.fixture(scope="module")
def registry():
    """What the registering modules wake: they may be asked for on any floor."""
    return set(run(IMPORT_ALL, *WHOLE.registers)) | DOOR


IMPORT_FLOORS = """
import importlib, json, sys
awake = []
for names in json.loads(sys.argv[1]):
    for name in names:
        importlib.import_module(name)
    modules = [x for x, found in sys.modules.items() if type(found) is type(sys)]
    awake.append([name for name in modules if name.startswith("minijax")])
print(json.dumps(awake))
"""


@pytest.fixture(scope="module")
def awake():
    """What is awake after each floor, in one process that imports them in turn."""
    names = [[name for name in FLOORS if FLOORS[name] == n] for n in LEVELS]
    return dict(zip(LEVELS, run(IMPORT_FLOORS, json.dumps(names)), strict=True))


@pytest.mark.parametrize("floor", LEVELS, ids=str)
def test_low_floors_wake_no_higher_one(floor, awake, registry):
    folders = {name.rpartition(".")[0] for name in FLOORS}
    for name in {*awake[floor]} - registry - folders:
        assert FLOORS[name] <= floor


def test_any_module_may_be_the_first():
    """One of five, on each floor; `LONG=1` takes all."""
    names = [*FLOORS][:: 1 if LONG else 5]
    assert cold_processes.compare([["alone", name] for name in names]) == []


def test_registering_modules_are_awake_with_the_first_public_name():
    names, registers, waiting = public.read(ROOT / PACKAGE)
    assert (WHOLE.registers, WHOLE.waiting) == (registers, waiting)
    for space in ("minijax", "minijax.lax", "minijax.numpy", "minijax.stages"):
        name = "add" if space == "minijax.lax" else next(iter(names[space]))
        awake = run(FIRST_NAME, space, name)  # the first one of lax needs no tables
        assert {*registers} - {*waiting} <= {*awake}, space
        assert waiting.keys().isdisjoint(awake), space


TREES = "tree_util.tree_map", "tree_util.DictKey", "tree.map"


@pytest.mark.parametrize("name", TREES)
def test_trees_wake_trees_alone(name):
    space, _, name = f"minijax.{name}".rpartition(".")
    awake = {*run(FIRST_NAME, space, name)} - DOOR
    awake -= {"minijax.tree", "minijax.tree_util"}
    assert awake and {name.split(".")[1] for name in awake} == {"pytrees"}


def test_what_was_asked_for_early_works_when_all_is_awake():
    assert run(EARLY) == [[4.0], "Array(3., dtype=float32, weak_type=True)", True]


def test_only_public_names_are_offered():
    offered, floors = run(OFFERED), {chapter.folder for chapter in CHAPTERS}
    table = public.read(ROOT / PACKAGE)[0]
    below = {name.split(".")[1] for name in table if name.count(".") == 1}
    assert set(offered["minijax"]) == {*table["minijax"]} | below
    assert below >= {"numpy", "lax", "tree_util", "errors", "core", "interpreters"}
    shared = {"as_jax", "custom_derivatives", "distributed", "memory"}
    shared |= {"nn", "numpy", "sharding"}
    assert not below & (floors - shared)
    assert offered["minijax.interpreters"] == [
        "ad",
        "batching",
        "mlir",
        "partial_eval",
        "xla",
    ]
    assert set(offered["minijax.numpy"]) == {*table["minijax.numpy"], "fft", "linalg"}


OFFERED = """
import importlib, json
spaces = "minijax", "minijax.numpy", "minijax.interpreters"
print(json.dumps({name: dir(importlib.import_module(name)) for name in spaces}))
"""

EARLY = """
import json
from minijax import tree_util
early = tree_util.tree_map
import minijax
[x] = early(lambda x: minijax.numpy.asarray(x) + 1, [2.0])
[y] = early(minijax.jit(lambda x: x + 1), [x])
print(json.dumps([[float(y)], repr(x), tree_util.tree_map is early]))
"""


FIRST_NAME = """
import importlib, json, sys
getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
modules = [x for x, found in sys.modules.items() if type(found) is type(sys)]
print(json.dumps([name for name in modules if name.startswith("minijax")]))
"""

PUBLIC_NAMES = """
import importlib, json, sys
from minijax._public import PUBLIC
modules = sorted({m for names in PUBLIC.values() for m in names.values()})
if sys.argv[1] == "modules first":
    for name in modules:
        importlib.import_module(name)
wrong = []
for space, names in PUBLIC.items():
    for name, module in names.items():
        exec(f"from {space} import {name} as found")
        inside = getattr(found, "__wrapped__", getattr(found, "func", None))
        own = getattr(sys.modules[module], name)
        if own not in (found, inside) and getattr(own, "__wrapped__", own) != inside:
            wrong.append(f"{space}.{name}")
print(json.dumps(wrong))
"""


@pytest.mark.parametrize("order", ["names first", "modules first"])
def test_public_names_reach_their_modules(order):
    wrong = run(PUBLIC_NAMES, order)
    assert not wrong, f"hidden by a module of the same name: {wrong}"
