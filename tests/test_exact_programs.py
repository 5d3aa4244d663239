"""A share of the exact programs; what they are made of; that they notice faults."""

import subprocess
import sys

import numpy as np
import pytest

import minijax.numpy as jnp
from tests import exact_drawing, exact_programs, mutants
from tests.commands import blocks
from tests.exact_values import Draw, Value

DAILY = 10


@pytest.mark.parametrize("block", blocks(4, 40))
def test_all_ways_agree_bit_by_bit(block):
    for seed in range(DAILY * block, DAILY * (block + 1)):
        wrong, case = exact_programs.problems(seed)
        assert not wrong, "\n".join([f"seed {seed}", *wrong, case.script()])


DRAWN = """
    jnp.maximum .astype('uint8') lax.complex
    jnp.argmax jnp.sum reduce_window lax.cumsum reverse=True lax.cummax
    jnp.transpose .reshape lax.rev lax.pad dynamic_slice dynamic_update_slice jnp.roll
    jnp.concatenate jnp.take( mode='clip' .set( .add( .max( segment_sum jnp.sort argsort
    lax.top_k lax.sort searchsorted dot_general conv_general_dilated lax.scan
    while_loop fori_loop lax.cond lax.switch jax.vmap jax.jit jax.vjp jax.jvp
""".split()


def test_what_is_drawn():
    texts, dtypes, results = [], set(), set()
    for seed in range(100):
        drawing = exact_drawing.drawing(seed, "wide")
        assert drawing.refused == []
        texts += [text for _, text in drawing.lines]
        dtypes |= {x.dtype.name for x in drawing.inputs.values()}
        results.add(len(drawing.results))
    text = "\n".join(texts).replace("'bfloat16'", "bfloat16")
    assert [word for word in DRAWN if word not in text] == []
    assert dtypes >= {"float32", "bfloat16", "complex64", "bool", "uint16"}
    assert len(texts) > 6 * 100 and max(results) > 3


def test_sums_that_would_be_rounded_are_not_drawn():
    """17 million ones are no whole number of float32 that sums can be compared by."""
    draw = Draw(np.random.default_rng(0), [], 100)
    x = Value("x", jnp.zeros((4, 4)), 2**21)
    drawn = {draw.exact(x, [("x + x", 2**22), ("x.sum()", 2**25)]) for _ in range(20)}
    assert drawn == {("x + x", 2**22)}
    assert not Value("x", jnp.full(3, 0.5), 1).is_exact()
    assert not Value("x", jnp.full(3, 2.0), 1).is_exact()
    assert Value("x", jnp.full(3, 2.0 - 1.0j), 2).is_exact()


@pytest.mark.parametrize(
    "mutant, kind, start",
    [
        (mutants.running_folds_begin_anew, "small", 0),
        (mutants.running_folds_begin_anew, "chains", 0),
        (mutants.wide_row_end, "wide", 0),
        (mutants.limits_too_far, "wide", 0),
        (mutants.one_pixel_beside_itself, "images", 150),
    ],
)
def test_faults_are_noticed(mutant, kind, start):
    with mutant():
        seeds = range(start, start + 60)
        found = (exact_programs.problems(seed, kind) for seed in seeds)
        assert next((case for wrong, case in found if wrong), None)


def test_a_fault_is_made_small():
    with mutants.running_folds_begin_anew():
        pairs = (exact_programs.problems(seed, "small") for seed in range(60))
        case = next(case for wrong, case in pairs if wrong)
        while smaller := next((x for x in case.smaller() if x.problems()), None):
            case = smaller
    assert len(case.lines) <= 2 and len(case.results) == 1
    assert "def program(" in case.script()
    done = subprocess.run(
        [sys.executable, "-c", case.script()], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"  # there the fault is mended


def test_the_command_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["exact_programs", "--count", "2"])
    assert not exact_programs.main()
    assert "2 programs, " in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["exact_programs", "--kind", "none"])
    with pytest.raises(SystemExit, match="small, wide, chains, images"):
        exact_programs.main()
