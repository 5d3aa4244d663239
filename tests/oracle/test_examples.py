"""The examples give the same losses with minijax and with real JAX."""

from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("sklearn")
pytest.importorskip("tqdm")

EXAMPLES = Path(__file__).parents[2] / "examples"
IMPORT = "import minijax as jax"


def load(name, line):
    """Return an example as a namespace, with `line` for its import."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert text.count(IMPORT) == 1
    names = {"__name__": name}
    exec(compile(text.replace(IMPORT, line), f"{name}.py", "exec"), names)
    return names


def both(name):
    """Return an example with minijax, and with real JAX."""
    ours, theirs = load(name, IMPORT), load(name, "import jax")
    assert theirs["jax"] is jax and ours["jax"] is not jax
    return ours, theirs


def quiet(items, desc):
    return items


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "conv_digits", "digits", "sonnets", "wave",
    }  # fmt: skip


def test_digits():
    ours, theirs = both("digits")
    params, losses = ours["train"](bar=quiet)
    _, expected = theirs["train"](bar=quiet)
    assert len(losses) == ours["EPOCHS"] * ours["BATCHES"]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    assert ours["accuracy"](params) >= 0.95


def test_wave():
    ours, theirs = both("wave")
    params, losses = ours["train"](bar=quiet)
    _, expected = theirs["train"](bar=quiet)
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    assert losses[-1] < losses[0] / 100
    waves = ours["load"](ours["LENGTH"] + 5)
    dreamt = np.asarray(ours["dream"](params, waves[:-5], 5))
    assert np.abs(dreamt - waves[-5:]).mean() < 0.05
