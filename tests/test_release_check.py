"""The check of a release: which Pythons, and what its processes see."""

import re
import sys

import pytest

from tests import release_check

WORKFLOWS = release_check.ROOT / ".github" / "workflows"


@pytest.mark.parametrize("name", ["test", "release"])
def test_workflows_and_classifiers_name_the_same_pythons(name):
    text = (WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8")
    listed = re.search(r"python: \[.*\]|python-version: \|[\s\d.]*", text)
    found = re.findall(r"3\.\d+", listed[0])
    assert sorted(found) == release_check.versions()


def test_a_python_that_is_not_there():
    assert release_check.find("3.99") is None


def test_commands_have_an_empty_home(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://x.org")
    run = release_check.runner(sys.executable, tmp_path)
    code = "import os; print(*(os.environ.get(k) for k in {}))"
    names = ["PYTHONPATH", "PIP_INDEX_URL", "HOME"]
    said = run(sys.executable, "-c", code.format(names))
    assert said == f"None https://x.org {tmp_path / 'home'}"
    with pytest.raises(release_check.Failed, match="no good"):
        run(sys.executable, "-c", "raise SystemExit('no good')")


def test_the_chosen_tests_are_there():
    tests = release_check.ROOT / "tests"
    assert all((tests / f"test_{name}.py").exists() for name in release_check.CHOSEN)
    assert "as_text" in release_check.example()
