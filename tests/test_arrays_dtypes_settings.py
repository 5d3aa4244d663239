"""The switches of the package."""

import subprocess
import sys
import threading
import types

import pytest

from minijax.arrays.dtypes import Config, _on_or_off, config, enable_x64


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
        assert switches.depth == 4  # who reads a switch finds that a block is over
        with pytest.raises(ValueError):
            switches.update("depth", "deep")
    assert switches.depth == 6
    assert heard == [[3], [3, 4], [3, 4, 5], [6, 4, 5], [6, 4], [6]]


def test_a_thread_that_is_overtaken_keeps_what_the_other_has_set():
    class Overtaken(Config):
        overtaken = False

        def __setattr__(self, name, value):
            if name == "_values" and self.overtaken:
                self.overtaken = False
                self.update("b", 5)
            super().__setattr__(name, value)

    switches = Overtaken()
    for name in "ab":
        switches.define(name, 0, int)
    switches.overtaken = True
    switches.update("a", 1)
    assert switches.values == {"a": 1, "b": 5}


def test_a_switch_may_be_changed_while_its_change_is_told():
    switches, heard = Config(), []

    def told(values):
        heard.append(values)
        if values == [1]:
            switches._values["depth"] = 2  # as another thread does

    switches.define("depth", 0, int, told=told)
    switches.update("depth", 1)
    assert heard == [[0], [1], [2]]


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


def test_unknown_switches_are_named_with_one_that_is_like_them():
    for use in (
        lambda: config.update("jax_enable_x46", 1),
        lambda: config.jax_enable_x46,
        lambda: config.override("jax_enable_x46", 1).__enter__(),
        lambda: config.read("jax_enable_x46"),
    ):
        with pytest.raises(AttributeError) as caught:
            use()
        assert str(caught.value) == (
            "Unrecognized config option: jax_enable_x46. Did you mean jax_enable_x64?"
        )
    with pytest.raises(AttributeError, match=r"option: other\.$"):
        config.update("other", 1)


def test_values_are_those_of_this_thread():
    assert config.values["jax_enable_x64"] is False
    with enable_x64():
        assert config.values["jax_enable_x64"] is config.read("jax_enable_x64") is True
        assert config.x64_enabled
    assert not config.x64_enabled


def test_the_command_line_sets_switches(monkeypatch):
    switches = Config()
    switches.define("jax_deep", False, _on_or_off)
    switches.define("jax_depth", 1, lambda value: value)
    switches.define("jax_name", None, lambda value: value)
    switches.define("jax_late", 0, lambda value: value)
    words = "run.py --jax_deep --jax_depth=3 --jax_name=a=b --jax_other=1 jax_late=1 -x"
    monkeypatch.setattr(sys, "argv", [*words.split(), "--", "--jax_late=1"])
    switches.parse_flags_with_absl()
    assert switches.values == {
        "jax_deep": True, "jax_depth": 3, "jax_name": "a=b", "jax_late": 0
    }  # fmt: skip


def test_absl_sets_switches_as_its_program_starts(monkeypatch):
    flags, app = types.ModuleType("absl.flags"), types.ModuleType("absl.app")
    flags.FLAGS, started = {}, []

    def define(name, default, help):
        flags.FLAGS[name] = types.SimpleNamespace(value=default, present=0)

    flags.DEFINE_bool = flags.DEFINE_string = define
    app.call_after_init = started.append
    for name, module in ("absl.flags", flags), ("absl.app", app):
        monkeypatch.setitem(sys.modules, name, module)
    switches = Config()
    switches.define("jax_deep", False, _on_or_off)
    switches.define("jax_depth", 1, lambda value: value)
    switches.config_with_absl()
    assert flags.FLAGS["jax_depth"].value == "1"
    flags.FLAGS["jax_depth"] = types.SimpleNamespace(value="4", present=1)
    started[0]()
    assert (switches.jax_deep, switches.jax_depth) == (False, 4)


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
    code = "from minijax.arrays.dtypes import config; print(config.jax_enable_x64)"
    environment = {"JAX_ENABLE_X64": word, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(value), done.stderr
