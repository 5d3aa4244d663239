"""The classes of the errors of classic mistakes are JAX's; its messages are recorded.

With ``MINIJAX_ORACLE=record`` the table in `tests/data` is written anew.
"""

import json
import os
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.mistakes import JAX_WORDS, MISTAKES, message, report  # noqa: E402

TABLE = Path(__file__).parents[1] / "data" / "mistakes.json"


@pytest.fixture(scope="module")
def recorded():
    """What JAX says, from the file, which is written first where that is wanted."""
    if os.environ.get("MINIJAX_ORACLE") == "record":
        messages = {title: message(jax, m.run) for title, m in MISTAKES.items()}
        lines = {t: report(jax, m.run)[1].count("\n") for t, m in MISTAKES.items()}
        table = {"version": jax.__version__, "messages": messages, "lines": lines}
        TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return json.loads(TABLE.read_text(encoding="utf-8"))["messages"]


@pytest.mark.parametrize("title", MISTAKES)
def test_class_is_jax_s(title, recorded):
    ours, _ = message(minijax, MISTAKES[title].run)
    theirs, _ = message(jax, MISTAKES[title].run)
    assert ours == theirs == recorded[title][0]


@pytest.mark.parametrize("title", MISTAKES)
def test_the_record_is_what_jax_says(title, recorded):
    assert recorded[title] == list(message(jax, MISTAKES[title].run))


@pytest.mark.parametrize("title", JAX_WORDS)
def test_words_are_those_of_jax(title, recorded):
    assert JAX_WORDS[title] in recorded[title][1]
