"""A share of the battery that switches annotations off, and what it can see."""

import re
from unittest.mock import patch

import numpy as np
import pytest

import minijax
from minijax.llvm.targets import forced_target, host_target
from minijax.vectorization import row_schedules as held_rows
from tests import annotations
from tests.annotations import ANNOTATIONS, Recorded, child, nest_without, problems
from tests.backends_here import HERE
from tests.vector_cases import column_folds, row_program, turned


@pytest.mark.parametrize("seed", range(0, 16, 8))
def test_programs_without_annotations(seed):
    faults, counts = child(seed, 5, "")
    assert (faults, counts["programs"]) == ([], 5)


def shares(x):
    """Softmax of rows, without the largest number of each."""
    e = minijax.numpy.exp(x)
    return e / e.sum(1, keepdims=True)


PROGRAMS = {
    "vector": (lambda x: x * 2 + 1, (100,)),
    "tile": (lambda x: (x * 2).T, (40, 300)),
    "keep": (shares, (40, 300)),
    "stream": (lambda x: x.sum(0), (40, 300)),
    "together": (lambda x: (x[:, :, None] + x.T[None]).min(1), (20, 33)),
    "strip": (lambda x: minijax.numpy.tanh(x.sum(2)), (40, 3, 50)),
    "unroll": (lambda x: x.sum(1), (50, 3)),
    "block": (lambda x: x.sum(), (700_001,)),
    "parallel": (lambda x: minijax.numpy.tanh(x), (4000,)),
    "mask": (lambda x: minijax.numpy.tanh(x) * x + 1, (100,)),
}


def numbers(shape):
    """Return numbers from 0 to 1: no sum of them is near 0."""
    return np.linspace(0, 1, np.prod(shape), dtype="f4").reshape(shape)


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_each_annotation_is_met_and_can_be_switched_off(annotation):
    if annotation == "mask" and host_target().vector_bytes < 64:
        pytest.skip("only AVX-512 has registers for masks")
    f, shape = PROGRAMS[annotation]
    x, texts = numbers(shape), []
    Recorded.met = set()
    for backend in ("cpu, recorded", f"cpu without {annotation}"):
        jitted = minijax.jit(f, backend=backend)
        texts.append(jitted.lower(x).compile().as_text("llvm"))
        assert np.allclose(jitted(x), f(minijax.numpy.asarray(x)), rtol=1e-4, atol=1e-6)
    assert annotation in Recorded.met and texts[0] != texts[1]


def test_other_batteries_run_the_package_s_own_backends():
    """Else each of them would take four times as long behind this file."""
    assert "cpu" in HERE and not [name for name in HERE if "," in name or " " in name]


@pytest.mark.parametrize("annotation", annotations.LEFT_OUT)
def test_nothing_is_left_of_an_annotation(annotation):
    f32, target = np.dtype("float32"), forced_target("avx512")
    kernels = [row_program(40, 300, f32), column_folds(300, 40, "add", f32)]
    kernels += [turned(40, 300, f32, 1), row_program(3, 5, f32)]
    told = {"vector": "lanes=|kind='vector'|kind='masked'", "tile": r"Tile\("}
    told |= {"keep": r"RowStore\(", "stream": r"Stream\(", "strip": "kind='strip'"}
    told |= {"block": "blocked=True", "together": "kind='together'"}
    told |= {"unroll": "kind='unrolled'", "mask": "kind='masked'"}
    with patch.object(annotations.streaming, "far_bytes", lambda target: 2**10):
        texts = [str(nest_without(annotation, k, target)) for k in kernels]
    assert not any(re.search(told[annotation], text) for text in texts)


def test_a_wrong_annotation_is_seen():
    recalled = held_rows.step_emitters[held_rows.RowLoad]

    def forgets(f, step):
        recalled(f, step)
        f.names[step.row.node] = f.splat("float", "1.0", f.lanes_of(step.row.node))

    shape = 41, 300  # for which no test has made machine code
    x = numbers(shape)
    with patch.dict(held_rows.step_emitters, {held_rows.RowLoad: forgets}):
        wrong = minijax.jit(shares, backend="cpu, recorded")(x)
        right = minijax.jit(shares, backend="cpu without keep")(x)
    assert np.allclose(right, shares(minijax.numpy.asarray(x)), rtol=1e-4, atol=1e-6)
    assert not np.allclose(wrong, right, rtol=1e-2)


def test_the_lines_of_a_child_are_read():
    said = "seed 4\nMET tile vector\nPROBLEM 'all is wrong'\nseed 5\n"
    faults, counts = annotations.read(said, "here ", "-11", "a crash")
    assert faults == [
        "here seed 4: all is wrong",
        "here seed 5: the process ended with -11\na crash",
    ]
    assert counts == {"programs": 2, "tile": 1, "vector": 1}
    assert annotations.said(counts).startswith("2 programs, vector off 1, tile off 1,")


def test_a_program_says_what_its_nests_have():
    found, met = problems(1)
    assert found == [] and "vector" in met
