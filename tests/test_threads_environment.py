"""The environment report."""

import os
import subprocess
import sys

import numpy as np
import pytest

import minijax as jax
from minijax.dispatch.word_language import UnknownLayout
from minijax.threads import environment


def lines(text):
    return dict(line.partition(": ")[::2] for line in text.split("\n"))


def test_it_is_printed_or_returned(capsys, monkeypatch):
    monkeypatch.setitem(environment._LINES, "cache", lambda: "")  # others write to it
    text = jax.print_environment_info(return_string=True)
    assert capsys.readouterr().out == ""
    assert jax.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"
    said = lines(text)
    assert list(environment._LINES) == list(said)[: len(environment._LINES)]
    assert said["minijax"] == jax.__version__ and said["numpy"] == np.__version__


def test_variables_that_matter_are_in_it(monkeypatch):
    monkeypatch.setenv("JAX_SOMETHING", "1")
    monkeypatch.setenv("HOME_SOMETHING", "1")
    text = jax.print_environment_info(return_string=True)
    assert "\nJAX_SOMETHING=1" in text and "HOME_SOMETHING" not in text


@pytest.fixture
def enabled():
    """Other tests switch the cache off."""
    with jax.config.override("jax_enable_compilation_cache", True):
        yield


def test_the_cache(tmp_path, enabled):
    with jax.config.override("jax_compilation_cache_dir", str(tmp_path / "none")):
        assert environment._cache().endswith("not there yet")
    with jax.config.override("jax_compilation_cache_dir", None):
        assert environment._cache() == "off"
    tmp_path.chmod(0o700)
    with jax.config.override("jax_compilation_cache_dir", str(tmp_path)):
        assert environment._cache() == f"{tmp_path}, 0 files, 0.0 MB"


def test_who_answers_calls(monkeypatch):
    def refuse():
        raise UnknownLayout("lists")

    assert environment._calls().startswith("answered by ")
    monkeypatch.setattr(environment, "enable_fastpath", refuse)
    assert environment._calls().endswith("objects are not known (lists)")
    with jax.config.override("minijax_fast_path", False):
        assert environment._calls() == "answered by Python: minijax_fast_path is off"


def test_a_line_that_fails_says_why(monkeypatch):
    def broken():
        raise OSError("the disk is gone")

    monkeypatch.setitem(environment._LINES, "cache", broken)
    assert "cache: the disk is gone" in jax.print_environment_info(True)


def test_the_package_can_be_run():
    command = [sys.executable, "-m", "minijax"]
    settings = os.environ | {"MINIJAX_NUM_THREADS": "1"}
    made = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert made.returncode == 0 and not made.stderr
    said = lines(made.stdout)
    assert said["backend"].startswith("cpu (there are interpreter, python")
    assert said["threads"].startswith("1 of ")
    assert "MINIJAX_NUM_THREADS=1" in made.stdout
