"""Programs and test-suites that say jax, started as their users would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minijax
from minijax.as_jax import command, report

ROOT = Path(minijax.__file__).parents[1]
BOOK = Path(__file__).parents[1]  # beside the tests; the package may be installed
TESTS = """
import subprocess, sys
import jax, jax.numpy as jnp
import pytest

def test_slope():
    assert jax.jit(jax.grad(jnp.sin))(0.0) == 1.0

def test_wrong():
    assert jnp.ones(2).sum() == 3

@pytest.mark.skip
def test_not(): ...

def test_child():
    code = "import jax; print(jax.__version__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(said)
"""


def start(where, *words, **setting):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **setting}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, *words], cwd=where, env=env, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_theirs.py").write_text(TESTS)
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    (tmp_path / "script.py").write_text(
        "import sys, jax, beside\nprint(jax.grad(lambda x: x * x)(3.0), beside.VALUE,"
        " sys.argv[1:], __name__)\nsys.exit(7)\n"
    )
    return tmp_path


AS_JAX = "-m", "minijax.as_jax"
PYTEST = "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"


def test_a_script_gets_its_arguments_its_folder_and_its_status(folder):
    words = f"{folder}/script.py", "-m", "x"
    status, said, wrong = start(folder.parent, *AS_JAX, *words)
    assert (status, said.strip(), wrong) == (7, "6.0 5 ['-m', 'x'] __main__", "")


def test_a_program_on_the_command_line(folder):
    code = "import jax, beside, sys; print(jax.__version__, sys.argv)"
    assert start(folder, *AS_JAX, "-c", code, "a")[1].strip() == "0.10.2 ['-c', 'a']"


def test_a_module_is_found_in_the_current_folder(folder):
    assert start(folder, *AS_JAX, "-m", "script", "a")[1].strip() == (
        "6.0 5 ['a'] __main__"
    )


def test_the_report_of_a_test_suite(folder):
    status, said, _ = start(folder, *AS_JAX, "--report", *PYTEST)
    assert status == 1
    told = said[said.index("minijax as jax 0.10.2") :]
    assert "tests: 1 failed, 2 passed, 1 skipped" in told
    assert "time: " in told and "what took longest to compile" in told


def test_the_report_names_what_was_asked_for_in_vain(folder):
    code = "import jax\nhasattr(jax, 'nothing')\njax.debug.print('{}', 1)"
    said = start(folder, *AS_JAX, "--report", "-c", code)[1]
    assert "jax.nothing  <string>:2" in said
    assert "jax.debug.print: happen in the order of the program" in said


def test_the_report_comes_after_an_error_too(folder):
    status, said, wrong = start(folder, *AS_JAX, "--report", "-c", "import jax; 1 / 0")
    assert status == 1 and "ZeroDivisionError" in wrong and "minijax as jax" in said


@pytest.mark.parametrize(
    "words, passed",
    [
        (("-p", "minijax.as_jax"), True),
        (("-pminijax.as_jax",), True),
        (("-p", "minijax.as_jax", "--as-jax"), True),
        ((), False),
    ],
)
def test_the_plugin(folder, words, passed):
    code = "import sys; sys.modules['jax'] = sys.modules.get('jax')\n"  # none is here
    (folder / "conftest.py").write_text(code if not passed else "import jax\n")
    said = start(folder, *PYTEST, *words, "-k", "slope")[1]
    assert ("1 passed" in said) == passed, said


def test_a_project_that_chooses(folder):
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p minijax.as_jax\n")
    (folder / "test_theirs.py").write_text(
        "def test_it():\n    import jax\n    assert 'Alias' in type(jax).__name__\n"
    )
    assert "1 passed" in start(folder, *PYTEST, "--as-jax")[1]
    assert "1 failed" in start(folder, *PYTEST)[1]
    assert "1 passed" in start(folder, *PYTEST, MINIJAX_AS_JAX="1")[1]


@pytest.mark.parametrize(
    "words, sentence",
    [
        ((), "usage: "),
        (("-m",), "usage: "),
        (("none.py",), "there is no file 'none.py'"),
        (("--version", "0.4.1", "script.py"), "not of '0.4.1'"),
        (("--version",), "usage: "),
    ],
)
def test_wrong_words_are_told(folder, words, sentence):
    status, _, wrong = start(folder, *AS_JAX, *words)
    assert status == 1 and sentence in wrong and "Traceback" not in wrong


def test_the_plugin_refuses_where_real_jax_is_there_already(folder):
    (folder / "early.py").write_text(
        "import sys\nsys.modules['jax'] = type(sys)('jax')\n"
        "sys.modules['jax'].__file__ = 'there/jax.py'\n"
    )
    told = start(folder, *PYTEST, "-p", "early", "-p", "minijax.as_jax")
    assert "has been imported already, from there/jax.py" in told[2]


def test_help_is_the_usage(folder):
    status, said, _ = start(folder, *AS_JAX, "--help")
    assert status == 0 and said.strip() == command.USAGE


def test_each_declared_difference_is_quoted_from_the_page():
    page = (BOOK / "book" / "differences.md").read_text()
    for name, quoted in report.DIFFERENCES.items():
        assert quoted in page, name
        place, _, last = f"mini{name}".rpartition(".")
        assert hasattr(__import__(place, fromlist=[last]), last), name


def test_setup_writes_the_line_that_the_page_shows():
    page = (BOOK / "chapters" / "42_as_jax_rest.md").read_text()
    text = (BOOK / "setup.py").read_text()
    space: dict = {}
    exec(text[text.index("SWITCH = (") : text.index("class ")], space)
    assert f"\n{space['SWITCH']}```" in page
