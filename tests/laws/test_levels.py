"""The tests of each level run on that level: on the package as its pages left it."""

import ast
import os
import subprocess
import sys
from functools import cache

import pytest

from book.tools import export
from book.tools.modules import Package
from book.tools.source import PACKAGE, ROOT, read_chapters

# By the number of a chapter: tests that need no higher page, a few of each floor.
LEVELS = {
    4: """
        arrays_array_avals arrays_dtypes lax_elementwise_selection lax_shapes_cutting
        numpy_array_methods_indexing registry
    """,
    6: "pytrees_api_util pytrees_api_util_forward_api",
    9: "jaxprs_checker jaxprs_jaxpr jaxprs_jaxpr_staging jaxprs_pretty_printer",
    12: """
        jitting_arguments jitting_compilation jitting_compilation_trace_cache
        rematerialization_jaxpr_transforms_programs
    """,
    16: """
        python_backend_source callbacks_callback_primitives scans_splitting
        control_flow_common_agreement control_flow_common_rewiring
    """,
}
FILES = {n: [f"test_{name}" for name in names.split()] for n, names in LEVELS.items()}
RUN = """
import sys
import minijax, pytest
assert minijax.__path__[0].startswith(sys.argv[1]), minijax.__path__
options = "-q --noconftest -p no:cacheprovider --import-mode=importlib"
sys.exit(pytest.main([*options.split(), "--hypothesis-profile=ci", *sys.argv[2:]]))
"""


@cache
def package():
    return Package(read_chapters())


def imported(path, seen):
    """What a test imports of the package, itself or by a helper: `(module, name)`."""
    if path in seen or not path.is_file():
        return set()
    seen.add(path)
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(str(node.module), alias.name) for alias in node.names}
    for module, name in [*found]:
        if module.partition(".")[0] == "tests":
            whole = ROOT.joinpath(*module.split("."))
            for helper in (whole.with_suffix(".py"), whole / f"{name}.py"):
                found |= imported(helper, seen)
    return {pair for pair in found if pair[0].partition(".")[0] == PACKAGE}


def number_of(module, name):
    """The number of the chapter that has made a module, or a public name of it."""
    modules, public = package().by_name, package().public
    home = f"{module}.{name}" if f"{module}.{name}" in modules else module
    home = public.get(module, {}).get(name, home)
    return modules[home].chapter.floor.number if home in modules else 0  # a folder


@pytest.mark.parametrize(("level", "name"), [(n, x) for n in FILES for x in FILES[n]])
def test_it_imports_from_pages_up_to_its_level(level, name):
    pairs = imported(ROOT / "tests" / f"{name}.py", set())
    assert pairs and max(number_of(*pair) for pair in pairs) <= level


@pytest.mark.parametrize("level", FILES)
def test_the_tests_of_a_level_run_on_that_level(tmp_path, level):
    chapters = [c for c in package().chapters if c.floor.number <= level]
    export.write(export.make(chapters), tmp_path / PACKAGE)
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    files = [f"tests/{name}.py" for name in FILES[level]]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), *files],
        cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
