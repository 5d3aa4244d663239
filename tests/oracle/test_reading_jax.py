"""The map to the real JAX names files that are there."""

import re
from pathlib import Path

import jax
import pytest

from tests.test_reading_jax import PAGE, rows

HOME = Path(jax.__file__).parent


def test_the_page_is_about_this_version():
    assert jax.__version__ in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder, files, says", rows(), ids=lambda text: text[:20])
def test_files_are_there(folder, files, says):
    named = re.findall(r"`([^`]+)`", files)
    assert not [name for name in named if not (HOME / name).is_file()]


def test_names_in_the_first_sentences_are_in_its_core():
    text = "".join(path.read_text() for path in (HOME / "_src").rglob("*.py"))
    told = PAGE.read_text(encoding="utf-8").partition("## Interpreters")[0]
    names = re.findall(r"`([A-Za-z_]+)`", told.partition("How to read")[2])
    assert len(names) > 4
    assert not [name for name in names if name not in text]
