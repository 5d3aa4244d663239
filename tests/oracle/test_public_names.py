"""The record of JAX's public names, from which the page of compatibility is made.

With ``MINIJAX_ORACLE=record`` the table in `tests/data` is written anew.
"""

import json
import os

import pytest

jax = pytest.importorskip("jax")

from tests.public_names import MODULES, RECORD, names_of, recorded  # noqa: E402


@pytest.fixture(scope="module")
def record():
    """The record, which is written first where that is wanted."""
    if os.environ.get("MINIJAX_ORACLE") == "record":
        names = {path: names_of("jax", path) for path in MODULES}
        table = {"version": jax.__version__, "names": names}
        text = json.dumps(table, indent=None, separators=(",", ":"))
        RECORD.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    return recorded()


def test_the_record_is_of_this_version(record):
    assert record["version"] == jax.__version__
    assert [*record["names"]] == MODULES


@pytest.mark.parametrize("path", MODULES)
def test_the_record_has_the_names_of_jax(path, record):
    assert record["names"][path] == names_of("jax", path)
