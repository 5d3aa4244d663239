"""What a fresh Colab does, without a network: the first cell installs a wheel."""

import sys

import pytest

from book.tools import colab, owner
from tests.laws.test_chapters import FIRST_CELL

CELL = FIRST_CELL % (owner.current(), owner.reference())


@pytest.fixture
def wheels(tmp_path):
    """A folder with one wheel for each distribution."""
    for name in colab.DISTRIBUTIONS:
        (tmp_path / f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl").touch()
    return tmp_path


def test_the_address_becomes_that_of_the_wheels(wheels):
    text = colab.without_network(CELL, wheels)
    assert "github" not in text and "{address}" not in text
    for name in colab.DISTRIBUTIONS:
        file = f"{name.replace('-', '_')}-0.1.0-py3-none-any.whl"
        assert f'%pip install -q "{name} @ {(wheels / file).as_uri()}"' in text
    assert text.endswith("    import minijax\n    import minijax_book")


def test_a_first_cell_that_does_not_install_is_refused(wheels):
    with pytest.raises(ValueError, match="installs"):
        colab.without_network("import minijax", wheels)


def test_the_placeholder_is_named_before_git_is_called(monkeypatch):
    """Where the address is still the placeholder, one sentence says what to do."""
    placeholder = (FIRST_CELL % ("OWNER", "main")).replace("%pip install", "pip = ")
    monkeypatch.setitem(sys.modules, "minijax", None)
    with pytest.raises(RuntimeError, match="^Replace OWNER by .* account.$") as caught:
        exec(placeholder.replace(" -q ", ""))
    assert caught.value.__suppress_context__
