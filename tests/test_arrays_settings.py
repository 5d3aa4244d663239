"""The switches of the package."""

import subprocess
import sys
import threading

import pytest

from minijax.arrays.settings import Config, _on_or_off, config, enable_x64


def test_a_switch_is_an_attribute():
    switches = Config()
    switches.define("depth", 3, int)
    assert switches.depth == 3
    switches.update("depth", "4")
    assert switches.depth == 4


def test_who_is_told_hears_of_all_values():
    switches, heard = Config(), []
    switches.define("depth", 3, int, told=heard.append)
    with switches.override("depth", "4"):
        with switches.override("depth", 5):
            switches.update("depth", 6)
        with pytest.raises(ValueError):
            switches.update("depth", "deep")
    assert heard == [[3], [3, 4], [3, 4, 5], [6, 4, 5], [6, 4], [6]]


def test_a_value_that_is_not_accepted_changes_nothing():
    switches = Config()
    switches.define("depth", 3, int)
    with pytest.raises(ValueError, match="^depth: .*deep"):
        switches.update("depth", "deep")
    assert switches.depth == 3


@pytest.mark.parametrize("word", ["perhaps", "", "2"])
def test_a_word_that_says_neither_on_nor_off(word):
    with pytest.raises(ValueError, match=f"jax_enable_x64: '{word}' is neither"):
        config.update("jax_enable_x64", word)
    assert not config.jax_enable_x64


def test_unknown_switches_are_named_with_the_known_ones():
    for use in (
        lambda: config.update("jax_nonsense", 1),
        lambda: config.jax_nonsense,
        lambda: config.override("jax_nonsense", 1).__enter__(),
    ):
        with pytest.raises(AttributeError, match="jax_nonsense.*jax_enable_x64"):
            use()


def test_override_ends_with_the_block_even_after_an_error():
    with pytest.raises(KeyError), enable_x64():
        assert config.jax_enable_x64
        raise KeyError
    assert not config.jax_enable_x64


def test_override_nests():
    with enable_x64():
        with enable_x64(False):
            assert not config.jax_enable_x64
        assert config.jax_enable_x64


def test_override_is_of_this_thread():
    seen = []
    with enable_x64():
        thread = threading.Thread(target=lambda: seen.append(config.jax_enable_x64))
        thread.start()
        thread.join()
    assert seen == [False]


@pytest.mark.parametrize("word", ["maybe", ""])
def test_a_bad_word_in_the_environment_is_told_with_its_variable(word, monkeypatch):
    told = rf"deep: '{word}' is neither on nor off.*variable DEEP: correct or unset it"
    with pytest.raises(ValueError, match="off.$"):
        Config().define("deep", word, _on_or_off)
    monkeypatch.setenv("DEEP", word)
    with pytest.raises(ValueError, match=told):
        Config().define("deep", word, _on_or_off)


@pytest.mark.parametrize(("word", "value"), [("1", True), ("true", True), ("0", False)])
def test_environment(word, value):
    code = "from minijax.arrays.settings import config; print(config.jax_enable_x64)"
    environment = {"JAX_ENABLE_X64": word, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(value), done.stderr
