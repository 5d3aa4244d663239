"""The digits example gives the same losses with minijax and with real JAX."""

from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("sklearn")
pytest.importorskip("tqdm")

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"
IMPORT = "import minijax as jax"


def load(line):
    """Return the example as a namespace, with `line` for its import."""
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count(IMPORT) == 1
    names = {"__name__": "digits"}
    exec(compile(text.replace(IMPORT, line), str(EXAMPLE), "exec"), names)
    return names


def quiet(items, desc):
    return items


def test_losses_and_accuracy():
    ours, theirs = load(IMPORT), load("import jax")
    assert theirs["jax"] is jax and ours["jax"] is not jax
    params, losses = ours["train"](bar=quiet)
    _, expected = theirs["train"](bar=quiet)
    assert len(losses) == ours["EPOCHS"] * ours["BATCHES"]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    assert ours["accuracy"](params) >= 0.95
