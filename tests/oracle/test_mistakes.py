"""The classes of the errors of classic mistakes are JAX's; its messages are recorded.

With ``MINIJAX_ORACLE=record`` the table in `tests/data` is written anew.
"""

import json
import os
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.mistakes import MISTAKES, message  # noqa: E402

TABLE = Path(__file__).parents[1] / "data" / "mistakes.json"


@pytest.fixture(scope="module")
def recorded():
    """What JAX says, from the file, which is written first where that is wanted."""
    if os.environ.get("MINIJAX_ORACLE") == "record":
        messages = {title: message(jax, m.run) for title, m in MISTAKES.items()}
        table = {"version": jax.__version__, "messages": messages}
        TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return json.loads(TABLE.read_text(encoding="utf-8"))["messages"]


@pytest.mark.parametrize("title", MISTAKES)
def test_class_is_jax_s(title, recorded):
    ours, _ = message(minijax, MISTAKES[title].run)
    theirs, _ = message(jax, MISTAKES[title].run)
    assert ours == theirs == recorded[title][0]
